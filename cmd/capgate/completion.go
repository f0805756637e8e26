package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/provider"
)

// offer lists what one word of a usage line can stand for.
type offer struct {
	list func(cmd *cobra.Command, typed string) []string
	open bool // what is offered is only the beginning of the word
}

// offers are the words of usage lines that the shell can complete.
func offers() map[string]offer {
	return map[string]offer{
		"AGENT":    {list: offerAgents},
		"SPEC":     {list: offerVerbs, open: true},
		"UPSTREAM": {list: offerUpstreams},
		"PROVIDER": {list: func(*cobra.Command, string) []string { return provider.Names() }},
	}
}

// flagWords says which of these words a flag takes, whatever command it is of.
func flagWords() map[string]string {
	return map[string]string{
		"agent": "AGENT", "parent": "AGENT", "grant": "SPEC", "requirement": "SPEC", "provider": "PROVIDER",
	}
}

// completed has the shell complete the arguments of a command, and of those below
// it, by what their usage lines call them.
func completed(cmd *cobra.Command) *cobra.Command {
	for _, c := range cmd.Commands() {
		completed(c)
	}
	words := argumentsOf(cmd)
	if len(words) > 0 && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if last := len(words) - 1; len(args) > last && !strings.HasSuffix(words[last], "...") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			word := words[min(len(args), len(words)-1)]
			return offers()[strings.TrimSuffix(word, "...")].complete(cmd, typed)
		}
	}
	for flag, word := range flagWords() {
		if cmd.LocalNonPersistentFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return offers()[word].complete(cmd, typed)
			}) // the flag is there, and registered once
		}
	}
	return cmd
}

// argumentsOf reads the arguments off a usage line: AGENT and SPEC... of
// "grant AGENT [SPEC...]". Where flags or a choice begin, no more is known.
func argumentsOf(cmd *cobra.Command) (words []string) {
	for _, w := range strings.Fields(cmd.Use)[1:] {
		if w = strings.Trim(w, "[]"); w == "" || w != strings.ToUpper(w) || strings.ContainsAny(w, "-(|") {
			break
		}
		words = append(words, w)
	}
	return words
}

// complete offers what goes on from what was typed. What is not known is offered
// as nothing, and never as files.
func (o offer) complete(cmd *cobra.Command, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if o.open {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	if o.list == nil {
		return nil, directive
	}
	rest := slices.DeleteFunc(o.list(cmd, typed), func(text string) bool { return !strings.HasPrefix(text, typed) })
	return rest, directive
}

// offerAgents lists the ids of agents, the short form of each unless the long one
// is being typed.
func offerAgents(cmd *cobra.Command, typed string) (ids []string) {
	cfg, view, err := configurationOf(cmd)
	if err != nil {
		return nil // somebody is typing: this is no moment for an error
	}
	roster, err := agents.Load(agents.Options{Config: cfg.Sandbox, View: view}, cfg.Agents...)
	if err != nil {
		return nil
	}
	for ag := range roster.All() {
		id := ag.ID
		if short := strings.TrimPrefix(id, "agents/"); !strings.HasPrefix(typed, "agents/") && capability.AgentID(short) == id {
			id = short
		}
		ids = append(ids, id)
	}
	return ids
}

// offerVerbs lists the verbs that a grant begins with.
func offerVerbs(*cobra.Command, string) (verbs []string) {
	for _, e := range capability.Catalogue() {
		verbs = append(verbs, cobra.CompletionWithDesc(string(e.Verb), e.Risk.String()+" risk: "+e.Help))
	}
	return verbs
}

func offerUpstreams(cmd *cobra.Command, _ string) (names []string) {
	cfg, _, err := configurationOf(cmd)
	if err != nil {
		return nil
	}
	for _, u := range cfg.Upstreams {
		names = append(names, u.Name)
	}
	return names
}

// configurationOf reads the configuration that a command would, as far as it has
// been typed.
func configurationOf(cmd *cobra.Command) (*config.Config, capability.View, error) {
	settings, err := config.ReadSettings(cmd.Flags())
	if err != nil {
		return nil, capability.View{}, err
	}
	view, err := hostView()
	if err != nil {
		return nil, capability.View{}, err
	}
	cfg, _, err := configuration(settings.Config, view)
	return cfg, view, err
}
