package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"capgate/config"
)

// app is what all commands share: the terminal, the settings, the exit code.
type app struct {
	ui       *ui
	began    bool // a command runs, so that the line of it makes sense
	code     int  // the exit code of a command that ran, 0 unless it says otherwise
	settings config.Settings
	lines    *lines // of the log; nil before there is one
	listen   string // where to listen instead of where the configuration says, "" for there
}

// command makes the commands, for the arguments that they are to read: of one that runs a
// gateway no other is made, since somebody waits for it to listen.
func (a *app) command(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "capgate",
		Short: "Gives each agent exactly the authority its record says",
		Long: `capgate gives each agent exactly the authority that its record says: enforced
at the call, in the skills it is shown and at the model's provider.

Exit codes: 0 done or allowed, 1 denied or findings, 2 usage, 3 configuration.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() == cobra.ShellCompRequestCmd {
				return nil // it reads the settings of the line that is being typed
			}
			settings, err := config.ReadSettings(cmd.Flags())
			if err != nil {
				return usage(err, "")
			}
			a.settings = settings
			a.ui.paintIf(settings.Color)
			for _, f := range settings.Findings {
				a.ui.line(a.ui.std.err, yellow, f.Severity.String(), f.Text)
			}
			return nil
		},
	}
	flags := root.PersistentFlags()
	config.AddFlags(flags)
	flags.BoolVar(&a.ui.json, "json", false, "print one JSON value; of events, one a line")
	if gateway := a.gateway(args); gateway != nil {
		root.AddCommand(gateway)
		root.CompletionOptions.DisableDefaultCmd = true
		return a.noticed(root)
	}
	root.AddCommand(a.demo(), a.serve(), a.stdio(), a.wrap(), a.agents(), a.upstreams(), a.tools(), a.skills(), a.pins(), a.providers(), a.explain(), a.events(), a.check(), a.doctor(), a.catalogue(), a.version())
	root.InitDefaultCompletionCmd()
	return a.noticed(completed(root))
}

// noticed has it noted when a command, or one below it, begins to run: what fails before that is
// the line. One that has others below it says which: a mistyped one is an error, not a request
// for that.
func (a *app) noticed(cmd *cobra.Command) *cobra.Command {
	for _, c := range cmd.Commands() {
		a.noticed(c)
	}
	if cmd.HasParent() && cmd.HasSubCommands() {
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			if a.ui.json { // nobody reads help as JSON
				return usage(fmt.Errorf("%s takes a command", cmd.CommandPath()), cmd.CommandPath()+" --help lists them")
			}
			return cmd.Help()
		}
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.began = true
			return run(cmd, args)
		}
	}
	return cmd
}

// gateway makes the command that runs a gateway if that is what the arguments begin with.
func (a *app) gateway(args []string) *cobra.Command {
	if len(args) == 0 {
		return nil
	}
	switch args[0] {
	case "serve":
		return a.serve()
	case "stdio":
		return a.stdio()
	case "wrap":
		return a.wrap()
	}
	return nil
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if a.ui.json {
				return a.ui.emit(map[string]string{"version": version})
			}
			a.ui.printf("capgate %s\n", version)
			return nil
		},
	}
}

// takes accepts some arguments, and names those of the usage line when there are fewer or more.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		if most == 0 {
			err := fmt.Errorf("%s takes no argument, and was given %q", cmd.CommandPath(), args[0])
			if ext := filepath.Ext(args[0]); ext == ".yml" || ext == ".yaml" {
				return usage(err, "a configuration is given by -c")
			}
			return err
		}
		_, words, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("%s takes %s", cmd.CommandPath(), words)
	}
}

// oneAgent accepts exactly one agent id.
func oneAgent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one agent id, such as scout", cmd.CommandPath())
	}
	return nil
}
