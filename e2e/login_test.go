//go:build unix

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// logins are the scenarios in which the suite plays a server that wants a token, and the
// authorization servers that it names. Left out is one in which a client goes by a URL, which a
// gateway at home has none of; and one of 2025-03-26 that has endpoints guessed.
func logins() map[string][]string {
	return map[string][]string{
		"2025-03-26": {"2025-03-26-oauth-metadata-backcompat"},
		modern: {
			"metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "metadata-issuer-mismatch", "resource-mismatch",
			"scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit",
			"token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none", "offline-access-scope", "offline-access-not-supported",
			"iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized",
			"authorization-server-migration", "pre-registration",
		},
	}
}

// TestUpstreamLogin has the suite look at how the gateway is logged in to a server.
func TestUpstreamLogin(t *testing.T) {
	installed(t, conformance)
	for version, scenarios := range logins() {
		for _, scenario := range scenarios {
			t.Run(version+"/"+scenario, func(t *testing.T) {
				t.Parallel() // most of it is waiting
				if ok, complaint := played(t, loggedIn, "auth/"+scenario, version); !ok {
					t.Error(complaint)
				}
			})
		}
	}
}

// logIn does what a person does who has a server that wants a token: logs in, and does
// what a denial says, or the event of it, for as long as it says something new.
func logIn(t *testing.T, server string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "me.md", "---\nclass: agent\ncapabilities: [\"tool.invoke:up.*\"]\n---\n")
	configure := func(oauth string) {
		write(t, dir, "capgate.yml", fmt.Sprintf("agents: .\nsecrets: { given: { file: ./given } }\nupstreams:\n  up: { url: %q%s }\n", server, oauth))
	}
	configure(asGiven(t, dir))
	config := filepath.Join(dir, "capgate.yml")
	said := visit(t, config)
	a := launch(t, `{}`, nil, "-c", config, "stdio", "--agent", "me").call(t, "up__test-tool", `{}`)
	switch ref := regexp.MustCompile(`\[event (\w+)\]`).FindStringSubmatch(a.text()); {
	case ref == nil:
		return
	case strings.Contains(a.text(), "does not let its token do that"):
		event := run(t, capgate(t, "-c", config, "events", "query", "--ref", ref[1])).out
		more := regexp.MustCompile(`a token for the scopes "(.*)" would do`).FindStringSubmatch(event)
		had := regexp.MustCompile(`has a token for up: .*, for (.*)\n`).FindStringSubmatch(said)
		if more == nil || had == nil {
			return // no scopes would do, or the suite misses what they are asked for
		}
		configure(", oauth: { scopes: [" + strings.Join(strings.Fields(`"`+strings.ReplaceAll(had[1]+" "+more[1], " ", `" "`)+`"`), ", ") + "] }")
	case strings.Contains(a.text(), "(401)"):
		if said := visit(t, config); !strings.Contains(said, "log out first") {
			return
		}
		run(t, capgate(t, "-c", config, "upstreams", "logout", "up"))
	default:
		return // it was refused to log in, as it should be
	}
	visit(t, config)
	launch(t, `{}`, nil, "-c", config, "stdio", "--agent", "me").call(t, "up__test-tool", `{}`)
}

// asGiven is what is written of the client that the suite has registered, where it has.
func asGiven(t *testing.T, dir string) string {
	t.Helper()
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Issuer string `json:"issuer"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
	}
	if given.Secret == "" {
		return ""
	}
	write(t, dir, "given", given.Secret)
	return fmt.Sprintf(`, oauth: { client_id: %q, client_secret: "{{secret:given}}", issuer: %q }`, given.ID, given.Issuer)
}

// visit logs in as in a browser, if there is a page to open, and returns what was said.
func visit(t *testing.T, config string) string {
	t.Helper()
	p := start(t, capgate(t, "-c", config, "upstreams", "login", "up"))
	page := regexp.MustCompile(`(?m)^(https?://\S+)$`)
	eventually(t, "a page, or an end", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return page.MatchString(p.said.String())
		}
	})
	if at := page.FindString(p.said.String()); at != "" {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // it is for people
		_ = resp.Body.Close()
	}
	p.await(t)
	return p.said.String()
}
