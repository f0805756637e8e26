//go:build unix

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The eras that the suite knows, and how its fixture speaks each over HTTP.
const (
	legacy       = "2025-11-25"
	modern       = "2026-07-28"
	legacyServer = "-stateless=false"
	modernServer = "-stateless=true"
)

// TestConformance asks the suite's questions directly and through the gateway: no
// check may say anything worse. This is R-SEC of both eras at once, as others
// understand the protocol.
func TestConformance(t *testing.T) {
	for _, era := range []struct {
		name, requirements, flag string
		known                    map[string]string
	}{
		{"legacy", legacy, legacyServer, map[string]string{"server-sse-polling": polling}},
		{"modern", modern, modernServer, nil},
	} {
		t.Run(era.name, func(t *testing.T) {
			installed(t, conformance)
			at := fixture(t, era.flag)
			direct := suite(t, at, era.requirements)
			t.Run("url", func(t *testing.T) {
				g := wrap(t, append(everything(), "--url", at)...)
				compare(t, direct, suite(t, g.open(t), era.requirements), era.known)
			})
			t.Run("command", func(t *testing.T) {
				g := wrap(t, append(everything(), "--", installed(t, everythingServer))...)
				compare(t, direct, suite(t, g.open(t), era.requirements), era.known)
			})
		})
	}
}

// TestBridges lets agents of one era at a server of the other, which speaks no
// other. What cannot be the same has its sentence.
func TestBridges(t *testing.T) {
	installed(t, conformance)
	t.Run("legacy agent", func(t *testing.T) {
		direct := suite(t, fixture(t, legacyServer), legacy)
		g := wrap(t, append(everything(), "--url", modernOnly(t, fixture(t, modernServer)))...)
		compare(t, direct, suite(t, g.open(t), legacy), knownToLegacy())
	})
	t.Run("modern agent", func(t *testing.T) {
		direct := suite(t, fixture(t, modernServer), modern)
		g := wrap(t, append(everything(), "--url", fixture(t, legacyServer))...)
		compare(t, direct, suite(t, g.open(t), modern), knownToModern(), oneRefused)
	})
}

// polling is why there is nothing to reconnect to.
const polling = "the gateway keeps no events: it completes itself a call whose stream the server closed"

// knownToLegacy says why checks are worse for a legacy agent of a modern server.
func knownToLegacy() map[string]string {
	const refuses = "the fixture's tool asks as servers used to, which the fixture refuses it in the modern era, directly as well; TestQuestions asks as one does now"
	return map[string]string{
		"server-sse-polling":           polling,
		"elicitation-sep1034-defaults": refuses,
		"elicitation-sep1330-enums":    refuses,
		"tools-call-elicitation":       refuses,
		"tools-call-sampling":          refuses,
	}
}

// knownToModern says why checks are worse for a modern agent of a legacy server.
func knownToModern() map[string]string {
	const (
		keys  = "a legacy server gives its questions no names: the gateway does, and the scenario wants those of the fixture; TestQuestions takes what it is given"
		once  = "a legacy session says once what its client can be asked: the gateway says what any request of the agent may be, and refuses what the request at hand cannot"
		state = "server-stateless sep-2575-"
	)
	return map[string]string{
		"input-required-result-basic-elicitation":       keys,
		"input-required-result-ignore-extra-params":     keys,
		"input-required-result-basic-list-roots":        "the gateway answers itself what the roots are, so that the agent is not asked",
		"input-required-result-multiple-input-requests": "a legacy server asks one thing at a time, and the gateway answers the question for the roots itself",
		"input-required-result-multi-round":             "the fixture asks a legacy client once and then hands out its second question as a result, directly as well",
		state + "missing-capability-http-400":           once,
		state + "server-rejects-undeclared-capability":  once,
	}
}

// oneRefused asks two things of a session at once, of which the request at hand can
// answer one. The fixture gives up as the other is refused, or is asked for the answer
// first: which, is chance.
const oneRefused = "input-required-result-capability-check"

// TestComparisonCanFail puts something in between that is known to break one
// thing: it forgets what host was asked for.
func TestComparisonCanFail(t *testing.T) {
	installed(t, conformance)
	at := fixture(t, legacyServer)
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	through := relay(t, func(r *httputil.ProxyRequest) { r.SetURL(to) })
	got := worse(suite(t, at, legacy), suite(t, through, legacy))
	if len(got) != 1 || got[0].scenario != "dns-rebinding-protection" {
		t.Errorf("worse: %v; want one check of dns-rebinding-protection", got)
	}
}

// TestUpstreamConformance has the suite play the server: what the gateway says to
// one on behalf of the suite's own client. The suite starts this program again as
// its client, with the address of its server.
func TestUpstreamConformance(t *testing.T) {
	if client := os.Getenv(throughClient); client != "" && flag.NArg() > 0 {
		through(t, client, flag.Arg(flag.NArg()-1))
		return
	}
	installed(t, conformance)
	client := installed(t, everythingClient)
	scenarios := map[string][]string{
		legacy: {"tools_call", "elicitation-sep1034-client-defaults", "sse-retry"},
		modern: {
			"tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers",
			"http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation",
		},
		extension: spoiledSkills(),
	}
	for _, version := range []string{legacy, modern, extension} {
		for _, scenario := range scenarios[version] {
			t.Run(version+"/"+scenario, func(t *testing.T) {
				t.Parallel() // most of it is waiting
				if ok, complaint := played(t, client, scenario, version); !ok {
					t.Error(complaint)
				}
			})
		}
	}
}

// extension stands for the version of scenarios that belong to none.
const extension = "extension"

// spoiledSkills are the scenarios in which the suite serves a skill that is not what
// its list says. There is one more, in which nothing may be read before it is asked for:
// it fails, as SKILL.md is read with the list.
func spoiledSkills() []string {
	return []string{"sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter"}
}

// played runs a scenario in which the suite plays the server, and this program its
// client. It is passed when every check of it is, there are some, and the client has
// nothing to complain of either: some scenarios do not mind when it has.
func played(t *testing.T, client, scenario, version string) (ok bool, complaint string) {
	t.Helper()
	suite := installed(t, conformance)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"client", "--command", self + " -test.run=^TestUpstreamConformance$ -test.v", "--scenario", scenario, "-o", t.TempDir()}
	if version != extension {
		args = append(args, "--spec-version", version) // it skips what is of no version
	}
	cmd := command(t, append([]string{suite}, args...)...)
	cmd.Env = append(cmd.Env, "CAPGATE_BIN="+os.Getenv("CAPGATE_BIN"), "CAPGATE_E2E="+kit(), throughClient+"="+client)
	got := run(t, cmd)
	said := got.out + got.err
	passed := regexp.MustCompile(`Passed: ([1-9]\d*)/(\d+), 0 failed, 0 warnings`).FindStringSubmatch(said)
	ok = got.code == 0 && passed != nil && passed[1] == passed[2] && !strings.Contains(said, "Client exited")
	lines := regexp.MustCompile(`.*(FAILURE|WARNING|Passed:|Error:|Client exited|_test\.go:).*`).FindAllString(said, -1)
	return ok, fmt.Sprintf("the suite ended with %d:\n%s", got.code, strings.Join(lines, "\n"))
}

// readSpoiled asks for the skills, and for the files of the one that the suite spoils.
func readSpoiled(t *testing.T, a agent) (list answer, files []answer) {
	t.Helper()
	list = a.ask(t, "skills/list", "", "")
	for _, file := range []string{"SKILL.md", "references/FORMS.md"} {
		uri := "skill://pdf-processing/" + file
		files = append(files, a.ask(t, "resources/read", uri, fmt.Sprintf(`{"uri":%q}`, uri)))
	}
	return list, files
}

// TestUpstreamConformanceCanFail: the same client without a gateway in between gets what
// belongs to a spoiled skill.
func TestUpstreamConformanceCanFail(t *testing.T) {
	installed(t, conformance)
	for _, scenario := range spoiledSkills() {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			if ok, complaint := played(t, directly, scenario, extension); ok || !strings.Contains(complaint, "Passed: 0/1, 1 failed") {
				t.Errorf("passed is %t: %s", ok, complaint)
			}
		})
	}
}

// throughClient names the client that is run through a gateway. One called directly is
// this program, and goes without; another is a person who logs the gateway in.
const (
	throughClient = "CAPGATE_E2E_CLIENT"
	directly      = "directly"
	loggedIn      = "logged in"
)

// through runs a client with a gateway between it and a server.
func through(t *testing.T, client, server string) {
	t.Helper()
	switch client {
	case directly:
		readSpoiled(t, agent{at: server})
		return
	case loggedIn:
		logIn(t, server)
		return
	}
	g := wrap(t, append(everything(), "--url", server)...)
	if slices.Contains(spoiledSkills(), os.Getenv("MCP_CONFORMANCE_SCENARIO")) {
		list, files := readSpoiled(t, agent{g.at, g.token})
		if !list.ok() || !strings.Contains(string(list.Result), `"skills":[]`) {
			t.Errorf("listed are %s%s", list.Result, list.text())
		}
		for _, a := range files {
			denied(t, a, "unknown_tool")
		}
		return
	}
	cmd := command(t, client, g.open(t))
	for _, name := range []string{"SCENARIO", "CONTEXT", "PROTOCOL_VERSION"} {
		name = "MCP_CONFORMANCE_" + name
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	if got := run(t, cmd); got.code != 0 {
		t.Errorf("the client ended with %d:\n%s%s", got.code, got.out, got.err)
	}
}

// TestQuestions carries what a server asks during a call across the eras, to an
// agent that answers whatever it is asked.
func TestQuestions(t *testing.T) {
	t.Run("legacy agent", func(t *testing.T) {
		at := modernOnly(t, fixture(t, modernServer))
		c := launch(t, `{"elicitation":{},"sampling":{},"roots":{}}`, map[string]string{
			"elicitation/create":     `{"action":"accept","content":{"name":"Alice","color":"red","ok":true}}`,
			"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"Paris"}}`,
			"roots/list":             `{"roots":[{"uri":"file:///"}]}`, // wider than what the agent holds
		}, append(append([]string{"wrap", "--agent", "me"}, everything()...), "--url", at)...)
		for tool, want := range map[string]string{
			"elicitation": "Alice", "sampling": "Paris", "multi_round": "red", "request_state": "state-ok", "list_roots": "exposed 0 root",
		} {
			allowed(t, c.call(t, "test_input_required_result_"+tool, `{}`), want)
		}
		for _, method := range []string{"elicitation/create", "sampling/createMessage"} {
			if !slices.Contains(c.asked, method) {
				t.Errorf("the client was asked %v, and not %s", c.asked, method)
			}
		}
	})
	t.Run("modern agent", func(t *testing.T) {
		g := wrap(t, append(everything(), "--url", fixture(t, legacyServer))...)
		a := agent{g.at, g.token}
		for tool, question := range map[string]struct{ args, result, want string }{
			"test_elicitation": {`{"message":"m"}`, `{"action":"accept","content":{"username":"Alice","email":"a@b.c"}}`, "Alice"},
			"test_sampling":    {`{"prompt":"p"}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"Paris"}}`, "Paris"},
		} {
			params := fmt.Sprintf(`"name":%q,"arguments":%s,%s`, tool, question.args, strings.Replace(agentMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{},"sampling":{}}`, 1))
			var first struct {
				RequestState  string
				InputRequests map[string]json.RawMessage
			}
			if err := json.Unmarshal(a.asked(t, tool, "{"+params+"}").Result, &first); err != nil || len(first.InputRequests) != 1 {
				t.Fatalf("%s: asked were %v, %v; want one question", tool, first.InputRequests, err)
			}
			for key := range first.InputRequests {
				params += fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}`, first.RequestState, key, question.result)
			}
			allowed(t, a.asked(t, tool, "{"+params+"}"), question.want)
			if again := a.asked(t, tool, "{"+params+"}"); again.ok() {
				t.Errorf("%s: the same answer was taken twice: %s", tool, again.Result)
			}
		}
	})
}
