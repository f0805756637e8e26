package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"capgate/capability"
)

// Settings is how the process itself runs. Nothing in it says what an agent may do.
type Settings struct {
	Config    string // the configuration file, "" to look for it
	LogLevel  string // debug, info, warn or error; "" where nobody says
	LogFormat string // text or json
	Color     string // auto, always or never

	// Findings name the CAPGATE_ variables that no setting reads, most of all
	// those that look as if policy could be changed by them.
	Findings []capability.Finding
}

// setting is one line of the table that flags and variables are made from.
type setting struct {
	name     string // of the flag; the variable is derived from it
	short    string
	fallback string   // "" for none, where the command that reads it knows better
	words    []string // what may be written, nil for anything
	help     string
	field    func(s *Settings) *string
}

func settings() []setting {
	return []setting{
		{
			name: "config", short: "c", help: "configuration `file`; else ./capgate.yml or $XDG_CONFIG_HOME/capgate/capgate.yml, whichever is there",
			field: func(s *Settings) *string { return &s.Config },
		},
		{
			name: "log-level", words: []string{"debug", "info", "warn", "error"},
			help: "the least that is logged, by default info, and warn where a client starts it", field: func(s *Settings) *string { return &s.LogLevel },
		},
		{
			name: "log-format", fallback: "text", words: []string{"text", "json"},
			help: "how it is logged", field: func(s *Settings) *string { return &s.LogFormat },
		},
		{
			name: "color", fallback: "auto", words: []string{"auto", "always", "never"},
			help: "when output is coloured", field: func(s *Settings) *string { return &s.Color },
		},
	}
}

const envPrefix = "CAPGATE_"

// variable returns the name of the setting in the environment: CAPGATE_LOG_LEVEL.
func (s setting) variable() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// AddFlags adds a flag for every setting, for [ReadSettings] to read.
func AddFlags(flags *pflag.FlagSet) {
	for _, s := range settings() {
		help := s.help
		if s.words != nil {
			help += ": " + strings.Join(s.words, ", ")
		}
		flags.StringP(s.name, s.short, s.fallback, help+" (or $"+s.variable()+")")
	}
}

// ReadSettings reads the settings: flags over variables over defaults. Flags
// that were never added are simply not there.
func ReadSettings(flags *pflag.FlagSet) (Settings, error) {
	v := viper.New()
	var out Settings
	for _, s := range settings() {
		v.SetDefault(s.name, s.fallback)
		flag := flags.Lookup(s.name)
		if flag != nil {
			if err := v.BindPFlag(s.name, flag); err != nil {
				return Settings{}, err
			}
		}
		if err := v.BindEnv(s.name, s.variable()); err != nil {
			return Settings{}, err
		}
		value := v.GetString(s.name)
		byFlag := flag != nil && flag.Changed
		if s.words != nil && (byFlag || value != s.fallback) && !slices.Contains(s.words, value) {
			return Settings{}, s.refuse(value, byFlag)
		}
		*s.field(&out) = value
	}
	out.Findings = strayVariables(os.Environ())
	return out, nil
}

// refuse says what is wrong with a value, and where it came from.
func (s setting) refuse(value string, byFlag bool) error {
	name := s.variable()
	if byFlag {
		name = "--" + s.name
	}
	return &Error{
		Text: fmt.Sprintf("%s cannot be %q", name, clip(value)),
		Hint: meant(value, s.words, "it is one of "+strings.Join(s.words, ", ")),
	}
}

// strayVariables names the variables with our prefix that nothing reads. Their
// values are not shown: they may be anything.
func strayVariables(environ []string) []capability.Finding {
	var known []string
	for _, s := range settings() {
		known = append(known, s.variable())
	}
	var findings []capability.Finding
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) {
			continue
		}
		hint := "it has no effect: policy is written in " + FileName + " only"
		if near := capability.Closest(name[len(envPrefix):], trimmed(known)); near != "" {
			hint = "did you mean " + envPrefix + near + "?"
		}
		findings = append(findings, capability.Finding{
			Code: "unknown_variable", Severity: capability.Warning,
			Text: fmt.Sprintf("the environment variable %s is no setting", clip(name)), Hint: hint,
		})
	}
	slices.SortFunc(findings, func(a, b capability.Finding) int { return strings.Compare(a.Text, b.Text) })
	return findings
}

func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.TrimPrefix(n, envPrefix)
	}
	return out
}
