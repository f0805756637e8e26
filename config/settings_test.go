package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"capgate/capability"
	"capgate/config"
)

// settings reads the settings for a command line and an environment in which
// nothing else is ours.
func settings(t *testing.T, args []string, env map[string]string) (config.Settings, error) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "CAPGATE_") {
			t.Setenv(name, "") // restores it afterwards
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	flags := pflag.NewFlagSet("capgate", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return config.ReadSettings(flags)
}

func TestReadSettings(t *testing.T) {
	defaults := config.Settings{LogFormat: "text", Color: "auto"}
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want func(s *config.Settings)
	}{
		{"defaults", nil, nil, func(*config.Settings) {}},
		{
			"variables over defaults", nil,
			map[string]string{"CAPGATE_CONFIG": "/etc/A.yml", "CAPGATE_LOG_LEVEL": "warn", "CAPGATE_LOG_FORMAT": "json", "CAPGATE_COLOR": "never"},
			func(s *config.Settings) {
				*s = config.Settings{Config: "/etc/A.yml", LogLevel: "warn", LogFormat: "json", Color: "never"}
			},
		},
		{
			"flags over variables",
			[]string{"-c", "b.yml", "--log-level=debug", "--color=always"},
			map[string]string{"CAPGATE_CONFIG": "/etc/a.yml", "CAPGATE_LOG_LEVEL": "warn", "CAPGATE_COLOR": "never"},
			func(s *config.Settings) { s.Config, s.LogLevel, s.Color = "b.yml", "debug", "always" },
		},
		{
			"a flag that says the default",
			[]string{"--log-level", "info"},
			map[string]string{"CAPGATE_LOG_LEVEL": "error"},
			func(s *config.Settings) { s.LogLevel = "info" },
		},
		{"an empty variable is none", nil, map[string]string{"CAPGATE_COLOR": "", "CAPGATE_LOG_LEVEL": ""}, func(*config.Settings) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := defaults
			tc.want(&want)
			got, err := settings(t, tc.args, tc.env)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v; the settings differ (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A command without our flags still has settings.
func TestNoFlags(t *testing.T) {
	t.Setenv("CAPGATE_COLOR", "never")
	got, err := config.ReadSettings(pflag.NewFlagSet("other", pflag.ContinueOnError))
	if err != nil || got.Color != "never" || got.LogFormat == "" {
		t.Errorf("ReadSettings = %+v, %v", got, err)
	}
}

func TestWrongSettings(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want string
		hint string
	}{
		{"flag", []string{"--log-level=loudest"}, nil, `--log-level cannot be "loudest"`, "it is one of debug, info, warn, error"},
		{"empty flag", []string{"--log-level="}, nil, `--log-level cannot be ""`, "it is one of debug, info, warn, error"},
		{"variable", nil, map[string]string{"CAPGATE_COLOR": "nver"}, `CAPGATE_COLOR cannot be "nver"`, "did you mean never?"},
		{"case", nil, map[string]string{"CAPGATE_LOG_FORMAT": "JSON\x1b"}, `CAPGATE_LOG_FORMAT cannot be "JSON\x1b"`, "it is one of text, json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := settings(t, tc.args, tc.env)
			if err == nil || err.Error() != tc.want || config.Errors(err)[0].Hint != tc.hint {
				t.Errorf("ReadSettings says %v (%+v)", err, config.Errors(err))
			}
			if !cmp.Equal(got, config.Settings{}) {
				t.Errorf("ReadSettings returns %+v with its error", got)
			}
		})
	}
}

func TestStrayVariables(t *testing.T) {
	got, err := settings(t, nil, map[string]string{
		"CAPGATE_SANDBOX": "/", "CAPGATE_AGENTS": "/tmp", "CAPGATE_LOGLEVEL": "debug", "CAPGATE_COLOR": "never", "XCAPGATE_COLOR": "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	finding := func(name, hint string) capability.Finding {
		return capability.Finding{
			Code: "unknown_variable", Severity: capability.Warning,
			Text: "the environment variable " + name + " is no setting", Hint: hint,
		}
	}
	const none = "it has no effect: policy is written in capgate.yml only"
	want := []capability.Finding{
		finding("CAPGATE_AGENTS", none),
		finding("CAPGATE_LOGLEVEL", "did you mean CAPGATE_LOG_LEVEL?"),
		finding("CAPGATE_SANDBOX", none),
	}
	if diff := cmp.Diff(want, got.Findings); diff != "" {
		t.Errorf("the findings differ (-want +got):\n%s", diff)
	}
}

// No variable reaches policy: what a file means is the same in any environment.
func TestEnvironmentIsNotPolicy(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "capgate.yml")
	write(t, name, "agents: ./agents\nsandbox: ./work\ntests:\n- agent: Read_File\n  deny: [agent.discover]\n")
	v := capability.View{Cwd: dir, Home: "/home/me"}
	before, _, err := config.Load(name, v)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range config.Schema() {
		plain := strings.NewReplacer(".", "_", "[]", "").Replace(strings.ToUpper(k.Name))
		t.Setenv("CAPGATE_"+plain, "/")
		t.Setenv(plain, "/")
	}
	t.Setenv("HOME", "/")
	t.Setenv("XDG_CONFIG_HOME", "/")
	after, _, err := config.Load(name, v)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%v; the environment changes the policy (-before +after):\n%s", err, diff)
	}
}

// The library for settings lower-cases keys and splits them at dots, so that it
// stands in one file, which reads no policy.
func TestSettingsStandAlone(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files: %v", err)
	}
	var users []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"github.com/spf13/`+`viper"`) {
			users = append(users, name)
		}
		if name == "settings.go" && (strings.Contains(string(text), "yaml.") || strings.Contains(string(text), "Config{")) {
			t.Errorf("%s reads policy", name)
		}
	}
	if !cmp.Equal(users, []string{"settings.go"}) {
		t.Errorf("%v use it", users)
	}
}
