package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"capgate/capability"
)

// catalogue prints every verb that can be granted.
func (a *app) catalogue() *cobra.Command {
	return &cobra.Command{
		Use:   "catalogue",
		Short: "List every verb that can be granted, with its risk and scope keys",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if a.ui.json {
				return a.ui.emit(catalogueRows())
			}
			for _, e := range capability.Catalogue() {
				a.printEntry("", e)
			}
			return nil
		},
	}
}

type catalogueRow struct {
	Verb     string            `json:"verb"`
	Risk     string            `json:"risk"`
	External bool              `json:"external"`
	Bare     bool              `json:"bare"` // grants something without a scope
	Keys     map[string]string `json:"keys"`
	Help     string            `json:"help"`
}

func catalogueRows() []catalogueRow {
	var rows []catalogueRow
	for _, e := range capability.Catalogue() {
		r := catalogueRow{Verb: string(e.Verb), Risk: e.Risk.String(), External: e.External(), Bare: e.Bare(), Keys: map[string]string{}, Help: e.Help}
		for _, k := range e.Keys {
			r.Keys[k.Name] = k.Type.String()
		}
		rows = append(rows, r)
	}
	return rows
}

func (a *app) printEntry(number string, e capability.Entry) {
	keys := make([]string, len(e.Keys))
	for i, k := range e.Keys {
		keys[i] = k.Name
	}
	u := a.ui
	u.printf("%s%s %-25s %-16s %s\n", number, u.paint(riskColor(e.Risk), fmt.Sprintf("%-6s", e.Risk)), e.Verb, strings.Join(keys, ","), u.paint(faint, e.Help))
}

// pick has the person at the terminal choose a verb from the catalogue, lowest
// risk first, and then asks for each scope key.
func (a *app) pick() ([]capability.Spec, error) {
	if !a.ui.std.terminal {
		return nil, usage(fmt.Errorf("no grant was named, and nobody is here to pick one"), "capgate agents grant scout 'net.get{hosts=[*.github.com]}'")
	}
	entries := capability.Catalogue()
	for i, e := range entries {
		a.printEntry(fmt.Sprintf("%2d  ", i+1), e)
	}
	answer, err := a.ui.prompt("grant which? [number or verb] ")
	if err != nil {
		return nil, usage(err, "")
	}
	entry, ok := chosen(entries, answer)
	if !ok {
		return nil, usage(fmt.Errorf("%q is none of these", answer), "")
	}
	spec := capability.Spec{Verb: string(entry.Verb), Bare: true}
	for _, k := range entry.Keys {
		if k.Type == capability.ArgsKey {
			continue
		}
		values, err := a.ui.prompt(fmt.Sprintf("%s (%s, comma-separated, empty for none): ", k.Name, k.Type))
		if err != nil {
			return nil, usage(err, "")
		}
		if values = strings.TrimSpace(values); values != "" {
			spec = spec.With(k.Name, splitList(values)...)
		}
	}
	return []capability.Spec{spec}, nil
}

func chosen(entries []capability.Entry, answer string) (capability.Entry, bool) {
	if n, err := strconv.Atoi(answer); err == nil {
		if n < 1 || n > len(entries) {
			return capability.Entry{}, false
		}
		return entries[n-1], true
	}
	return capability.Lookup(capability.Verb(answer))
}

// splitList splits at commas that stand outside of brackets, as patterns hold some.
func splitList(text string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == ',' && depth == 0:
			if v := strings.TrimSpace(text[start:i]); v != "" {
				out = append(out, v)
			}
			start = i + 1
		case text[i] == '{' || text[i] == '[':
			depth++
		case text[i] == '}' || text[i] == ']':
			depth--
		}
	}
	return out
}
