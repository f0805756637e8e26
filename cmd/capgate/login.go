package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/config"
	"capgate/guardrail"
	"capgate/store"
	"capgate/upstream"
)

// loginTime is how long a person has to come back from the browser.
const loginTime = 10 * time.Minute

func (a *app) upstreams() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upstreams",
		Short: "See the servers behind the gateway, and log in to them",
	}
	cmd.AddCommand(a.upstreamsList(), a.upstreamsLogin(), a.upstreamsLogout())
	return cmd
}

// loginOrder is what login is told.
type loginOrder struct{ browser, paste bool }

func (a *app) upstreamsLogin() *cobra.Command {
	var o loginOrder
	cmd := &cobra.Command{
		Use:   "login UPSTREAM",
		Short: "Give the gateway a token for a server, by way of a browser",
		Long: "login prints the address of a page on which you allow the gateway to use the server,\n" +
			"and waits for the browser to come back. The token is kept in the state folder, and\n" +
			"renewed for as long as the server's authorization server does so.\n\n" +
			"It is your token, and the gateway uses it for every agent: what an agent may do with\n" +
			"it is decided by its grants alone.",
		Example: "  capgate upstreams login tracker\n  capgate upstreams login tracker --paste   # the browser is on another machine",
		Args:    oneUpstream,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.browser && o.paste {
				return usage(errors.New("--browser and --paste exclude each other"), "")
			}
			w, err := a.load()
			if err != nil {
				return err
			}
			u, err := w.remote(args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), loginTime, fmt.Errorf("nobody has come back from the browser within %s", loginTime))
			defer cancel()
			return a.login(ctx, w, u, o)
		},
	}
	cmd.Flags().BoolVar(&o.browser, "browser", false, "open the page in a browser as well")
	cmd.Flags().BoolVar(&o.paste, "paste", false, "ask for the address that the browser ends at, which cannot reach this machine")
	return cmd
}

// oneUpstream accepts exactly one name of an upstream.
func oneUpstream(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes the name of one upstream", cmd.CommandPath())
	}
	return nil
}

// remote finds an upstream that a token can be used for.
func (w *world) remote(name string) (*config.Upstream, error) {
	var names []string
	for i := range w.cfg.Upstreams {
		u := &w.cfg.Upstreams[i]
		names = append(names, u.Name)
		if u.Name != name {
			continue
		}
		if u.URL == "" {
			return nil, usage(fmt.Errorf("the upstream %s has no url, and takes no token", name), "a server that is started here gets its secrets by env:")
		}
		if hasOwnToken(u) {
			return nil, usage(fmt.Errorf("the upstream %s has the header Authorization written", name), "remove it from headers: to log in")
		}
		return u, nil
	}
	hint := "capgate upstreams list shows those there are"
	if near := capability.Closest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, usage(fmt.Errorf("there is no upstream %.80q", name), hint)
}

// login has a person give the gateway a token. It is recorded before it is done.
func (a *app) login(ctx context.Context, w *world, u *config.Upstream, o loginOrder) error {
	oauth, err := w.servers.oauth(u)
	if err != nil {
		return broken(err, "")
	}
	r, err := newReceiver(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	l, err := oauth.Login(ctx, r.url())
	if err != nil {
		return &exit{exitRed, err, "nothing was changed"}
	}
	r.serve(l)
	to, err := l.URL()
	if err != nil {
		return &exit{exitRed, err, "nothing was changed"}
	}
	a.send(ctx, l, to, o)
	answer, err := a.comeBack(ctx, r, o)
	if err != nil {
		return &exit{exitRed, err, "nothing was changed; log in again"}
	}
	if err := w.record(u.Name, "somebody logs in, at "+l.Issuer()+asking(l)); err != nil {
		return unchangedFor(err)
	}
	if err := l.Finish(ctx, answer); err != nil {
		return &exit{exitRed, err, "nothing was changed; log in again"}
	}
	return a.showLogin(w, u)
}

// send tells the person where to go.
func (a *app) send(ctx context.Context, l *upstream.Login, to string, o loginOrder) {
	a.ui.note("open this page to log in at %s%s", l.Issuer(), asking(l))
	if a.ui.json {
		fmt.Fprintln(a.ui.std.err, plain(to)) // standard output is for the one value
	} else {
		a.ui.printf("%s\n", plain(to))
	}
	if o.browser {
		if err := openPage(ctx, to); err != nil {
			a.ui.note("no browser was opened: %v", err)
		}
	}
}

func asking(l *upstream.Login) string {
	if len(l.Scopes()) == 0 {
		return ""
	}
	return ", for the scopes " + strings.Join(l.Scopes(), " ")
}

// comeBack waits for the browser to come back, or for the address it ended at.
func (a *app) comeBack(ctx context.Context, r *receiver, o loginOrder) (url.Values, error) {
	if o.paste {
		text, err := a.ui.prompt("paste the address that the browser ends at: ")
		if err != nil {
			return nil, err
		}
		return pasted(text)
	}
	select {
	case answer := <-r.answers:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// pasted reads an address. It holds a code, so no error repeats it.
func pasted(text string) (url.Values, error) {
	u, err := url.Parse(text)
	if err != nil || u.RawQuery == "" {
		return nil, errors.New("that is no address that a browser ends at")
	}
	answer, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("that address cannot be read")
	}
	return answer, nil
}

// openPage hands an address to whatever opens pages here. No shell reads it, and
// what is no page of the web is not opened.
func openPage(ctx context.Context, to string) error {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return errors.New("only pages over https are opened")
	}
	program := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		return errors.New("not on this system")
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, u.String()) // it stays open when the login is over
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s could not be started", program)
	}
	go func() { _ = cmd.Wait() }() // what becomes of it is for the person to see
	return nil
}

// record records one thing that was done to an upstream.
func (w *world) record(name, text string) error {
	log, err := w.kept().ledger(w.scrubEvent)
	if err != nil {
		return err
	}
	_, err = log.Record(&guardrail.Event{Kind: guardrail.Notice, Upstream: name, Text: text})
	return errors.Join(err, log.Close())
}

// showLogin says what there is now.
func (a *app) showLogin(w *world, u *config.Upstream) error {
	view, err := w.upstreamView(u)
	if err != nil {
		return broken(err, "")
	}
	if a.ui.json {
		return a.ui.emit(view)
	}
	a.ui.note("the gateway has a token for %s: %s", u.Name, view.Token.text())
	return nil
}

func (a *app) upstreamsLogout() *cobra.Command {
	return &cobra.Command{
		Use:   "logout UPSTREAM",
		Short: "Forget the token for a server, and have it taken back",
		Long: "logout forgets every token for an upstream of that name, at whatever address it was,\n" +
			"and asks those who issued them to take them back. Running gateways follow at once.",
		Args: oneUpstream,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			out, err := w.logout(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.ui.json {
				return a.ui.emit(out)
			}
			a.ui.note("%s", out.text())
			return nil
		},
	}
}

// loggedOut is what became of the tokens for an upstream.
type loggedOut struct {
	Upstream  string `json:"upstream"`
	Forgotten int    `json:"forgotten"`
	Revoked   int    `json:"revoked"`       // of them, by who issued them
	Why       string `json:"why,omitempty"` // not all, as far as is known here
}

func (o loggedOut) text() string {
	text := fmt.Sprintf("the token for %s is forgotten", o.Upstream)
	if o.Revoked == o.Forgotten {
		return text + ", and was taken back by who issued it"
	}
	text += "; who issued it did not take it back, so that it is good until it expires"
	if o.Why != "" {
		text += " (the gateway could not show who it is: " + o.Why + ")"
	}
	return text
}

// logout narrows what the gateway can do, so it is done before it is recorded.
func (w *world) logout(ctx context.Context, name string) (loggedOut, error) {
	out := loggedOut{Upstream: name}
	st, err := store.Open(w.store())
	if err != nil {
		return out, broken(err, "")
	}
	keys, err := st.Keys(oauthBucket)
	if err != nil {
		return out, broken(err, "")
	}
	var now upstream.OAuthOptions
	if i := slices.IndexFunc(w.cfg.Upstreams, func(u config.Upstream) bool { return u.Name == name }); i >= 0 {
		now = w.servers.client(&w.cfg.Upstreams[i])
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, name+oauthSeparator) {
			continue
		}
		forgotten, revoked, err := upstream.Logout(ctx, &shelf{store: st, key: key}, upstream.Reach{}, now)
		if err != nil {
			return out, broken(err, "")
		}
		if forgotten {
			out.Forgotten++
		}
		if revoked {
			out.Revoked++
		}
	}
	if now.ClientSecret != nil && out.Revoked < out.Forgotten {
		if _, err := now.ClientSecret(); err != nil {
			out.Why = err.Error()
		}
	}
	if out.Forgotten == 0 {
		return out, &exit{exitRed, fmt.Errorf("there is no token for an upstream %.80q", name), "capgate upstreams list shows what there is"}
	}
	if err := w.record(name, "somebody logs out"); err != nil {
		return out, broken(fmt.Errorf("it was done, but could not be recorded: %w", err), "")
	}
	return out, nil
}
