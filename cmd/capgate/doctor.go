package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/config"
	"capgate/doctor"
	"capgate/provider"
	"capgate/proxy"
)

func (a *app) doctor() *cobra.Command {
	var strict, list bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is mistyped, too wide or missing",
		Long:  "doctor examines the configuration, every record and this machine. It warns and\nnever blocks; with --strict it exits 1 when it has warnings or errors.",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if list {
				return a.listChecks()
			}
			w, err := a.load()
			if err != nil {
				return err
			}
			findings := doctor.Examine(w.subject())
			if strict && len(findings) > 0 && findings[0].Severity > capability.Note {
				a.code = exitRed
			}
			return a.printFindings(findings)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit 1 on warnings and errors")
	cmd.Flags().BoolVar(&list, "list", false, "list the checks")
	return cmd
}

// withheld is where skills lie that an agent may not be shown.
func (w *world) withheld(agent string) []capability.Root {
	dirs := slices.Clone(w.cfg.Skills.Folders)
	for _, m := range w.cfg.Skills.Mirrors {
		if capability.AgentID(m.Agent) != capability.AgentID(agent) {
			dirs = append(dirs, m.Dir)
		}
	}
	all, _ := roots(dirs, w.view) // found when the fence was made
	return all
}

func (w *world) subject() doctor.Subject {
	s := doctor.Subject{
		Findings: slices.Concat(w.absent(), w.unserved(), w.findings), Own: w.own, OS: runtime.GOOS, Lossy: w.cfg.Guardrail.Continue, Guardrail: capability.Pos{File: w.cfg.File},
		Places: w.places(), User: ownUser(),
		Has: func(program string) bool {
			_, err := exec.LookPath(program)
			return err == nil
		},
	}
	for i := range w.cfg.Providers {
		s.Providers = append(s.Providers, w.providerOf(&w.cfg.Providers[i]))
	}
	if file := w.cfg.Listen.Key; file != "" && othersRead(file) {
		s.Readable = append(s.Readable, file)
	}
	for ag := range w.roster.All() {
		if ag.Err == nil {
			s.Agents = append(s.Agents, doctor.Agent{
				ID: ag.ID, Pos: capability.Pos{File: ag.File}, Set: ag.Set, Labelled: w.labelled(ag.ID), Wider: w.wider(ag.ID),
				Skills: w.withheld(ag.ID),
			})
		}
	}
	for i := range w.cfg.Upstreams {
		if u := &w.cfg.Upstreams[i]; u.Builtin == "" { // those are part of this program
			server := serverOf(u)
			server.Starts, _ = roots(w.servers.launcherFiles(u), w.view) // as far as they can be found
			server.Adrift = adrift(w.policy.Upstreams[i])
			server.Within = w.servers.repositoryAbove(u)
			s.Upstreams = append(s.Upstreams, server)
		}
	}
	return s
}

// othersRead reports whether a file may be read by who is neither its owner nor of its group.
func othersRead(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows"
}

func serverOf(u *config.Upstream) doctor.Upstream {
	s := doctor.Upstream{Name: u.Name, Pos: u.Pos, Program: u.Command != nil, Mapped: u.Mapping != "", Unpinned: u.Pins == "off", Unmediated: u.Unmediated}
	for _, name := range slices.Sorted(maps.Keys(u.Tools)) {
		if u.Tools[name].Pins == "off" && !s.Unpinned {
			s.Tools = append(s.Tools, name)
		}
	}
	return s
}

// adrift reports whether nobody knows what the paths hang from that tools of a server take.
func adrift(u *proxy.Upstream) bool {
	for _, name := range u.Mapping.Names() {
		for _, v := range slices.Concat(u.Tool(name).Mapping.Verbs()...) {
			if v.Resource() == "fs" || v.Resource() == "proc" {
				return slices.Contains(u.View.Told, "")
			}
		}
	}
	return false
}

// repositoryAbove is the top of the repository that a program is started below, where its
// environment keeps git from it.
func (s *servers) repositoryAbove(u *config.Upstream) string {
	if _, lifted := u.Env["GIT_CEILING_DIRECTORIES"]; u.Command == nil || lifted {
		return ""
	}
	dir, err := filepath.EvalSymlinks(s.cwd(u))
	for at := dir; err == nil; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if at == dir {
				return ""
			}
			return at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return ""
}

// labelled returns the tools with labels that an agent could call.
func (w *world) labelled(agent string) []doctor.Labelled {
	var all []doctor.Labelled
	for _, u := range w.policy.Upstreams {
		for _, name := range u.Mapping.Names() {
			t := u.Tool(name)
			if labels := t.Mapping.Labels(); len(labels) > 0 && w.gate.Visible(agent, t) {
				all = append(all, doctor.Labelled{Tool: t.Name, Labels: labels})
			}
		}
	}
	return all
}

// wider returns the names that providers take for more than an agent was granted, as its
// requests carry them, each with those providers.
func (w *world) wider(agent string) map[string][]string {
	at := map[string][]string{}
	for _, p := range w.cfg.Providers {
		vendor, _ := provider.Lookup(p.Name)
		if p.Strict || !vendor.Widens() {
			continue
		}
		tools, err := w.translated(vendor, agent)
		if err != nil {
			continue // it is not for this agent
		}
		for _, t := range tools {
			for _, c := range t.Changes {
				for _, name := range c.Hosts {
					if c.Did == provider.Wider && !slices.Contains(at[name], p.Name) {
						at[name] = append(at[name], p.Name)
					}
				}
			}
		}
	}
	return at
}

func (a *app) printFindings(findings []capability.Finding) error {
	if a.ui.json {
		if findings == nil {
			findings = []capability.Finding{}
		}
		return a.ui.emit(findings)
	}
	for _, f := range findings {
		a.ui.finding(a.ui.std.out, f)
	}
	if len(findings) == 0 {
		a.ui.printf("%s: nothing to say\n", a.ui.paint(green, "ok"))
	}
	return nil
}

func (a *app) listChecks() error {
	type row struct {
		Code     string `json:"code"`
		Severity string `json:"severity"`
		Title    string `json:"title"`
		Fix      string `json:"fix,omitempty"`
	}
	rows := []row{}
	for _, c := range doctor.Checks() {
		rows = append(rows, row{c.Code, c.Severity.String(), c.Title, c.Fix})
	}
	if a.ui.json {
		return a.ui.emit(rows)
	}
	for _, r := range rows {
		a.ui.printf("%-20s %-8s %s\n", r.Code, r.Severity, r.Title)
	}
	return nil
}
