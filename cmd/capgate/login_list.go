package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/config"
)

// upstreamView is an upstream as it is listed.
type upstreamView struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`   // command, url or builtin
	Target   string         `json:"target"` // the command line, the URL, or the builtin
	Mapping  string         `json:"mapping,omitempty"`
	Pins     string         `json:"pins"`
	Confined bool           `json:"confined"` // it cannot touch more than it declares
	Token    *upstreamToken `json:"token,omitempty"`
}

// upstreamToken is what may be seen of a token.
type upstreamToken struct {
	State     string   `json:"state"` // of the constants below
	Issuer    string   `json:"issuer,omitempty"`
	Scopes    []string `json:"scopes,omitempty"`
	Expires   string   `json:"expires,omitempty"`
	Renewable bool     `json:"renewable,omitempty"`
}

// The states of an upstream's token.
const (
	tokenNone    = "none"    // the server has not asked for one, as far as is known
	tokenWritten = "written" // in headers:
	tokenMissing = "missing" // a person has to log in
	tokenHeld    = "held"
)

func (a *app) upstreamsList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the servers behind the gateway, and which of them need a login",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			rows := []upstreamView{}
			for i := range w.cfg.Upstreams {
				row, err := w.upstreamView(&w.cfg.Upstreams[i])
				if err != nil {
					return broken(err, "")
				}
				rows = append(rows, row)
			}
			if a.ui.json {
				return a.ui.emit(rows)
			}
			for _, r := range rows {
				a.printUpstream(r)
			}
			if len(rows) == 0 {
				a.ui.note("there are no upstreams; write upstreams: in the configuration")
			}
			return nil
		},
	}
}

func (w *world) upstreamView(u *config.Upstream) (upstreamView, error) {
	v := upstreamView{Name: u.Name, Mapping: u.Mapping, Pins: u.Pins}
	switch {
	case u.Builtin != "":
		v.Kind, v.Target, v.Mapping, v.Pins, v.Confined = "builtin", u.Builtin, u.Builtin, "off", true
	case u.Command != nil:
		v.Kind, v.Target = "command", strings.Join(u.Command, " ")
	default:
		v.Kind, v.Target = "url", withoutQuery(u.URL)
		look, err := w.upstreamToken(u)
		if err != nil {
			return v, fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		v.Token = look
	}
	return v, nil
}

// withoutQuery is a URL without what may be a secret in it.
func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.RawQuery == "" {
		return text
	}
	u.RawQuery = "…"
	return u.String()
}

func (w *world) upstreamToken(u *config.Upstream) (*upstreamToken, error) {
	if hasOwnToken(u) {
		return &upstreamToken{State: tokenWritten}, nil
	}
	oauth, err := w.servers.oauth(u)
	if err != nil {
		return nil, err
	}
	s, err := oauth.State()
	if err != nil {
		return nil, err
	}
	look := &upstreamToken{State: tokenHeld, Issuer: s.Issuer, Scopes: s.Scopes, Renewable: s.Renewable}
	if !s.Expires.IsZero() {
		look.Expires = s.Expires.Format(time.RFC3339)
	}
	switch {
	case s.Issuer == "" && u.OAuth == nil:
		look.State = tokenNone
	case s.Issuer == "" || s.Ended:
		look.State = tokenMissing
	}
	return look, nil
}

// text says it for people.
func (t *upstreamToken) text() string {
	switch t.State {
	case tokenNone:
		return "no token yet, if it wants one"
	case tokenWritten:
		return "token in headers:"
	case tokenMissing:
		return "needs a login"
	}
	end := "token"
	if t.Expires != "" {
		end += " until " + t.Expires
	}
	if t.Renewable {
		end += ", renewed by itself"
	}
	if len(t.Scopes) > 0 {
		end += ", for " + strings.Join(t.Scopes, " ")
	}
	return end
}

func (a *app) printUpstream(v upstreamView) {
	more := []string{"mapping " + cmp.Or(v.Mapping, "none"), "pins " + v.Pins}
	if v.Kind == "command" && !v.Confined {
		more = append(more, a.ui.paint(red, "unconfined"))
	}
	if v.Token != nil {
		text := plain(v.Token.text())
		if v.Token.State == tokenMissing {
			text = a.ui.paint(yellow, text)
		}
		more = append(more, text)
	}
	a.ui.printf("%-20s %-8s %s\n    %s\n", v.Name, v.Kind, plain(v.Target), strings.Join(more, ", "))
}
