package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/guardrail"
)

func (a *app) agentsToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Issue, list and revoke the tokens that agents are recognised by",
		Long: "An agent that comes over HTTP shows a token. It is printed once, when it is issued;\n" +
			"what the state folder keeps is a hash of it. Running gateways follow every change\n" +
			"at once.",
	}
	cmd.AddCommand(a.tokenIssue(), a.tokenList(), a.tokenRotate(), a.tokenRevoke())
	return cmd
}

const (
	usualLife = "90d" // of a token for which nobody says otherwise
	noLife    = "never"
	lifeHint  = spanHint + "; or never, for a token that does not expire"
)

// tokenOrder is what issue and rotate are told.
type tokenOrder struct {
	life, note, grace string
	quiet             bool
}

func (a *app) tokenIssue() *cobra.Command {
	var o tokenOrder
	cmd := &cobra.Command{
		Use:     "issue AGENT",
		Short:   "Issue a token to an agent, and show it this once",
		Long:    "issue makes a token by which the gateway recognises an agent. On a terminal it says\nhow the token is used; elsewhere, and with --quiet, it prints the token alone.",
		Example: "  capgate agents token issue scout --note laptop\n  TOKEN=$(capgate agents token issue scout --for 12h)",
		Args:    oneAgent,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.giveToken(args[0], o, func(c *agents.Credentials, m making) (made, error) {
				token, next, err := c.Issue(m.agent, o.note, m.life, m.now, rand.Reader)
				return made{token, next, "the token %s is issued, and %s"}, err
			})
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.note, "note", "", "a `text` that says in the list what the token is for")
	return cmd
}

func (a *app) tokenRotate() *cobra.Command {
	var o tokenOrder
	cmd := &cobra.Command{
		Use:     "rotate AGENT",
		Short:   "Issue a token in the place of those that an agent has",
		Long:    "rotate issues a token with the note of the youngest, and makes all others of the agent\nexpire: at once, or when a time of grace is over.",
		Example: "  capgate agents token rotate scout --grace 10m",
		Args:    oneAgent,
		RunE: func(_ *cobra.Command, args []string) error {
			grace, err := parseSpan(o.grace)
			if err != nil {
				return usage(fmt.Errorf("--grace: %w", err), spanHint)
			}
			return a.giveToken(args[0], o, func(c *agents.Credentials, m making) (made, error) {
				token, next, err := c.Rotate(m.agent, m.life, grace, m.now, rand.Reader)
				until := m.now.Add(grace).UTC().Format(time.RFC3339)
				return made{token, next, "the token %s is issued, and %s; the others of the agent expire " + until + " at the latest"}, err
			})
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.grace, "grace", "0s", "how long the others stay valid, a `span` of time such as 10m")
	return cmd
}

func (o *tokenOrder) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.life, "for", usualLife, "how long the token is valid, a `span` of time such as 12h, or never")
	cmd.Flags().BoolVar(&o.quiet, "quiet", false, "print the token alone, on a terminal too")
}

// parseLife reads how long a token is to be valid. Only the word makes it endless:
// who writes a zero has meant something else.
func parseLife(text string) (time.Duration, error) {
	if text == noLife {
		return 0, nil
	}
	life, err := parseSpan(text)
	if err == nil && life == 0 {
		err = fmt.Errorf("a token that is valid for %s would be of no use", text)
	}
	return life, err
}

// making is what a token is made for, made what comes of it.
type (
	making struct {
		agent string
		life  time.Duration
		now   time.Time
	}
	made struct {
		token  string
		next   *agents.Credentials
		notice string // of the id of the token and of when it expires
	}
)

// giveToken makes a token and shows it.
func (a *app) giveToken(name string, o tokenOrder, give func(*agents.Credentials, making) (made, error)) error {
	life, err := parseLife(o.life)
	if err != nil {
		return usage(fmt.Errorf("--for: %w", err), lifeHint)
	}
	w, err := a.load()
	if err != nil {
		return err
	}
	ag, err := w.sound(name)
	if err != nil {
		return err
	}
	m := making{agent: ag.ID, life: life, now: time.Now()}
	var is made
	var fresh agents.Credential
	err = w.kept().changeTokens(false, func(c *agents.Credentials) (*agents.Credentials, []guardrail.Event, error) {
		var err error
		if is, err = give(c, m); err != nil {
			return nil, nil, usage(err, "")
		}
		fresh, _ = is.next.Recognise(is.token, m.now) // it was made just now
		return is.next, []guardrail.Event{tokenEvent(fresh.Agent, fmt.Sprintf(is.notice, fresh.ID, ending(fresh)))}, nil
	})
	if err != nil {
		return err
	}
	return a.showToken(viewOf(fresh, w.roster, m.now), is.token, o.quiet)
}

func tokenEvent(agent, text string) guardrail.Event {
	return guardrail.Event{Kind: guardrail.Notice, Agent: agent, Text: text}
}

func ending(c agents.Credential) string {
	if c.Expires.IsZero() {
		return "does not expire"
	}
	return "expires " + c.Expires.Format(time.RFC3339)
}

// changeTokens replaces the tokens of all agents.
func (k kept) changeTokens(narrows bool, change func(*agents.Credentials) (*agents.Credentials, []guardrail.Event, error)) error {
	return k.edit(entry{
		bucket: tokenBucket, key: tokenKey, narrows: narrows, hint: "capgate agents token list shows which tokens there are",
		change: func(data []byte) ([]byte, []guardrail.Event, error) {
			creds, err := agents.ParseCredentials(data)
			if err != nil {
				return nil, nil, err
			}
			next, events, err := change(creds)
			if err != nil {
				return nil, nil, err
			}
			return next.Encode(), events, nil
		},
	})
}

// tokenView is a token as it is listed, and as it is issued.
type tokenView struct {
	Token   string `json:"token,omitempty"` // only when it was just issued
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Created string `json:"created"`
	Expires string `json:"expires"` // or never
	Note    string `json:"note,omitempty"`
	State   string `json:"state"` // of the constants below
}

// The states of a token. Only a valid one is of use.
const (
	tokenValid    = "valid"
	tokenExpired  = "expired"
	tokenRevoked  = "revoked"
	tokenOrphan   = "no record"
	tokenWithheld = "broken record"
)

// viewOf is how a token is listed. Without a roster nothing is said of records.
func viewOf(c agents.Credential, roster *agents.Roster, now time.Time) tokenView {
	v := tokenView{ID: c.ID, Agent: c.Agent, Note: c.Note, Created: c.Created.Format(time.RFC3339), Expires: noLife, State: tokenValid}
	if !c.Expires.IsZero() {
		v.Expires = c.Expires.Format(time.RFC3339)
	}
	if c.Expired(now) {
		v.State = tokenExpired
		return v
	}
	if roster == nil {
		return v
	}
	switch ag, ok := roster.Agent(c.Agent); {
	case !ok:
		v.State = tokenOrphan
	case ag.Err != nil:
		v.State = tokenWithheld
	}
	return v
}

// showToken prints the one thing that is never printed again.
func (a *app) showToken(v tokenView, token string, quiet bool) error {
	u := a.ui
	if u.json {
		v.Token = token
		return u.emit(v)
	}
	u.printf("%s\n", token)
	if f, ok := u.std.out.(*os.File); quiet || !ok || !isTerminal(f) {
		return nil
	}
	u.printf("\nAuthorization: Bearer %s\n", token)
	until := "it does not expire"
	if v.Expires != noLife {
		until = "it expires " + v.Expires
	}
	u.note("this is the token of %s; it is not shown again, and %s", v.Agent, until)
	return nil
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list [AGENT]",
		Short: "List the tokens there are, without their secrets",
		Args:  takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			rows, err := w.tokens(args)
			if err != nil {
				return err
			}
			if a.ui.json {
				return a.ui.emit(rows)
			}
			for _, r := range rows {
				a.printToken(r)
			}
			if len(rows) == 0 {
				a.ui.note("there are no tokens; %s makes one", a.here("capgate agents token issue AGENT"))
			}
			return nil
		},
	}
}

// tokens are those of one agent, or of all. An agent that has no record any more
// may still have some.
func (w *world) tokens(only []string) ([]tokenView, error) {
	st, err := w.kept().store()
	if err != nil {
		return nil, err
	}
	creds, _, err := credentials(st)
	if err != nil {
		return nil, broken(err, "")
	}
	rows, now := []tokenView{}, time.Now()
	for c := range creds.All() {
		if len(only) == 0 || capability.AgentID(only[0]) == c.Agent {
			rows = append(rows, viewOf(c, w.roster, now))
		}
	}
	if len(only) > 0 && len(rows) == 0 {
		_, err = w.agent(only[0])
	}
	return rows, err
}

func (a *app) printToken(v tokenView) {
	text := "expires " + v.Expires
	switch {
	case v.State == tokenExpired:
		text = a.ui.paint(red, "expired") + " " + v.Expires
	case v.Expires == noLife:
		text = "does not expire"
	}
	if v.State == tokenOrphan || v.State == tokenWithheld {
		text += ", of no use: the agent has " + a.ui.paint(red, v.State)
	}
	note := ""
	if v.Note != "" {
		note = "  " + a.ui.paint(faint, cell(v.Note))
	}
	a.ui.printf("%s  %-20s issued %s, %s%s\n", v.ID, v.Agent, v.Created, text, note)
}

func (a *app) tokenRevoke() *cobra.Command {
	var agent, state string
	cmd := &cobra.Command{
		Use:     "revoke ID... | --agent AGENT",
		Short:   "Make tokens of no use, at once",
		Long:    "revoke takes the ids that list shows, or all tokens of one agent. A whole token is\ntaken as well: somebody has found one. Revoking needs the state folder and nothing\nelse: it works while the configuration or a record cannot be loaded.",
		Example: "  capgate agents token revoke 9f2c4e6a8b0d1c3e\n  capgate agents token revoke --agent scout",
		RunE: func(_ *cobra.Command, args []string) error {
			if (agent == "") == (len(args) == 0) {
				return usage(errors.New("revoke takes the ids of tokens, or --agent"), "capgate agents token list shows the ids")
			}
			k, err := a.salvage(state)
			if err != nil {
				return err
			}
			gone, err := k.revokeTokens(args, agent)
			if err != nil {
				return err
			}
			if a.ui.json {
				return a.ui.emit(gone)
			}
			for _, v := range gone {
				a.ui.note("the token %s of %s is revoked", v.ID, v.Agent)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of an agent, all of whose tokens are revoked")
	cmd.Flags().StringVar(&state, "state", "", "the state `folder`, when the configuration cannot say which it is")
	return cmd
}

// revokeTokens revokes all that are named, or none. It asks for no record: an
// agent that is gone or broken can still be taken its tokens from.
func (k kept) revokeTokens(named []string, agent string) ([]tokenView, error) {
	id, err := agentID(agent)
	if agent != "" && err != nil {
		return nil, err
	}
	gone := []tokenView{}
	now := time.Now()
	err = k.changeTokens(true, func(c *agents.Credentials) (*agents.Credentials, []guardrail.Event, error) {
		ids := tokenIDs(c, named, id)
		if len(ids) == 0 {
			return nil, nil, &exit{exitRed, fmt.Errorf("%s has no tokens", id), "capgate agents token list shows whose there are"}
		}
		var events []guardrail.Event
		for _, id := range ids {
			for have := range c.All() {
				if have.ID == id {
					v := viewOf(have, nil, now)
					v.State = tokenRevoked
					gone = append(gone, v)
					events = append(events, tokenEvent(have.Agent, fmt.Sprintf("the token %s is revoked", id)))
				}
			}
			next, ok := c.Revoke(id)
			if !ok {
				return nil, nil, &exit{exitRed, fmt.Errorf("there is no token %s; nothing was revoked", shownID(id)), "capgate agents token list shows the ids"}
			}
			c = next
		}
		return c, events, nil
	})
	return gone, err
}

// shownID writes an id that somebody gave, unless it is longer than any: it could
// be the secret.
func shownID(id string) string {
	const longest = 16
	if len(id) > longest {
		return "of that id"
	}
	return strconv.Quote(id)
}

// tokenIDs are the ids of the tokens that are named, once each, or of all of an agent.
func tokenIDs(c *agents.Credentials, named []string, agent string) (ids []string) {
	seen := map[string]bool{}
	for _, text := range named {
		id, _, _ := strings.Cut(strings.TrimPrefix(text, "cg_"), "_")
		if !seen[id] {
			ids = append(ids, id)
		}
		seen[id] = true
	}
	for have := range c.Of(agent) {
		ids = append(ids, have.ID)
	}
	return ids
}
