package provider_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/provider"
)

// list writes texts with commas between.
func list(n int, element func(int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return strings.Join(all, ",")
}

// TestTooMuch: what an agent can write again and again is bounded, whichever member it
// stands in and whether it stays or not.
func TestTooMuch(t *testing.T) {
	same := func(text string) func(int) string { return func(int) string { return text } }
	for name, test := range map[string]struct {
		where, body, element string
		most                 int
	}{
		"tools at Google":             {generate, `{"contents":[],"tools":[%s]}`, `{"functionDeclarations":[]}`, 1024},
		"tools at Google, left out":   {generate, `{"contents":[],"tools":[%s]}`, `{"codeExecution":{}}`, 1024},
		"plugins, left out":           {router, `{"model":"x/y","messages":[],"plugins":[%s]}`, `{}`, 1024},
		"foreign tools, left out":     {messages, `{"messages":[{"role":"system","content":[%s]}]}`, `{"type":"tool_addition","tool":{"type":"mcp_tool_reference"}}`, 1024},
		"tools of a group, left out":  {responses, `{"tools":[{"type":"namespace","tools":[%s]}]}`, `{"type":"x"}`, 1023},
		"tools in the midst of words": {messages, `{"messages":[{"role":"system","content":[%s]}]}`, `{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"f"}}}`, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, refused := rewrite(t, test.where, fmt.Sprintf(test.body, list(test.most, same(test.element))), holding(t)); refused != nil {
				t.Errorf("%d: %v", test.most, refused)
			}
			if _, _, refused := rewrite(t, test.where, fmt.Sprintf(test.body, list(test.most+1, same(test.element))), holding(t)); refused == nil || refused.Code != capability.LimitExceeded {
				t.Errorf("%d: %v", test.most+1, refused)
			}
		})
	}
}

// TestWaitingCost: calls that wait are not held against every tool each: what either
// of them costs is by its own length.
func TestWaitingCost(t *testing.T) {
	const body = `{"tools":[%s,{"googleSearch":{}}],"contents":[{"parts":[%s]}]}`
	tool := func(int) string { return `{"functionDeclarations":[]}` }
	cost := func(tools, calls int) uint64 {
		asked := fmt.Sprintf(body, list(tools, tool), list(calls, func(i int) string { return fmt.Sprintf(`{"toolCall":{"id":"%d","toolType":"GOOGLE_SEARCH_WEB"}}`, i) }))
		p := holding(t, "provider.web_search")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, refused := rewrite(t, generate, asked, p)
		runtime.ReadMemStats(&after)
		if refused != nil {
			t.Fatal(refused)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if apart, together := cost(1000, 1)+cost(1, 1000), cost(1000, 1000); together > 2*apart {
		t.Errorf("%d bytes apart, %d together", apart, together)
	}
}

// TestSourcesCost: the tools whose results may be fetched from are not held against
// every tool that is left out.
func TestSourcesCost(t *testing.T) {
	const body = `{"messages":[],"tools":[%s,{"type":"web_fetch_20260318","name":"web_fetch","url_sources":{"user_input":{"type":"only","tools":[%s]}}}]}`
	gone := func(i int) string { return fmt.Sprintf(`{"type":"x","name":"n%d"}`, i) }
	p := holding(t, hosts("*.github.com"))
	cost := func(tools, sources int) time.Duration {
		asked := fmt.Sprintf(body, list(tools, gone), list(sources, func(int) string { return `{}` }))
		start := time.Now()
		if _, _, refused := rewrite(t, messages, asked, p); refused != nil {
			t.Fatal(refused)
		}
		return time.Since(start)
	}
	apart, together := time.Hour, time.Hour
	for range 7 { // somebody else may be busy here
		apart, together = min(apart, cost(1000, 1)+cost(1, 50000)), min(together, cost(1000, 50000))
	}
	if together > 8*apart {
		t.Errorf("%v apart, %v together", apart, together)
	}
}

// counted counts how often an agent's hosts are read, which takes by the square of them.
type counted struct {
	provider.Authority
	reads map[capability.Verb]int
}

func (c counted) Hosts(v capability.Verb) []capability.Host {
	c.reads[v]++
	return c.Authority.Hosts(v)
}

// TestNothingCost: a request that asks for no host does not have the agent's hosts read,
// and neither has an answer that tells of none. They may be a thousand, of six agents
// above each other.
func TestNothingCost(t *testing.T) {
	p := holding(t, hosts("*.github.com"))
	reads := map[capability.Verb]int{}
	p.Authority = counted{p.Authority, reads}
	ask := func(body, answer string) {
		t.Helper()
		if _, _, refused := rewrite(t, messages, body, p); refused != nil {
			t.Fatal(refused)
		}
		vendor, _ := provider.Lookup("anthropic")
		watch := vendor.Watch(p)
		_, _ = watch.Write([]byte(answer))
		watch.Close()
	}
	ask(`{"messages":[],"tools":[{"name":"mine"}]}`, `{"content":[{"type":"text","text":"hello"}]}`)
	if len(reads) > 0 {
		t.Error(reads)
	}
	ask(`{"messages":[],"tools":[{"type":"web_search_20250305"},{"type":"web_fetch_20250910"}]}`, `{"content":[{"type":"web_search_tool_result"},{"type":"web_fetch_tool_result"}]}`)
	if want := map[capability.Verb]int{"net.get": 2}; !cmp.Equal(reads, want) { // by the request and by the answer
		t.Error(cmp.Diff(want, reads))
	}
}

// TestListsCost: whether anyone can have a name beneath a host is made out once for a
// request, and not for each list that the host goes into.
func TestListsCost(t *testing.T) {
	const held = 1000
	p := holding(t, hosts(list(held, func(i int) string { return fmt.Sprintf("*.h%d.example.com", i) })))
	cost := func(searches int) uint64 {
		body := `{"messages":[],"tools":[` + list(searches, func(int) string { return `{"type":"web_search_20250305"}` }) + `]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, _, refused := rewrite(t, messages, body, p)
		runtime.ReadMemStats(&after)
		if refused != nil || strings.Count(out, `"h999.example.com"`) != searches {
			t.Fatal(refused)
		}
		return after.Mallocs - before.Mallocs
	}
	if one, many := cost(1), cost(32); many-one > 31*held/2 {
		t.Errorf("%d allocations for one, %d for 32", one, many)
	}
}

// decided counts how often an authority decides.
type decided struct {
	provider.Authority
	times *int
}

func (d decided) Require(need *capability.Requirement) capability.Decision {
	*d.times++
	return d.Authority.Require(need)
}

// TestConnectorsCost: each tool of a connector is decided once for a request, however often
// the request names its server and whether the tool is held or not.
func TestConnectorsCost(t *testing.T) {
	tools := strings.Split(list(50, func(i int) string { return fmt.Sprint("t", i) }), ",")
	for _, where := range []struct{ path, body, server string }{
		{responses, `{"input":"","tools":[%s]}`, `{"type":"mcp","server_label":"%d","server_url":"https://mcp.hub.example/"}`},
		{messages, `{"messages":[],"mcp_servers":[%s]}`, `{"type":"url","name":"%d","url":"https://mcp.hub.example/"}`},
	} {
		for _, grant := range []string{"tool.invoke{tools=[hub.*]}", "tool.invoke{tools=[other.*]}"} {
			p, times := holding(t, grant), 0
			p.Authority = decided{p.Authority, &times}
			p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: tools}}
			_, changes, refused := rewrite(t, where.path, fmt.Sprintf(where.body, list(60, func(i int) string { return fmt.Sprintf(where.server, i) })), p)
			if refused != nil || len(changes) != 60 || times != len(tools) {
				t.Errorf("%s with %s: %d changes, %d decisions: %v", where.path, grant, len(changes), times, refused)
			}
		}
	}
}

// TestContainersCost: what hosts are held is made out once for a request, and not for each
// container that it asks for. A request of two kilobytes kept a processor busy for a third
// of a second.
func TestContainersCost(t *testing.T) {
	list200 := list(200, func(i int) string { return fmt.Sprintf("*.h%d.example.com", i) })
	p := holding(t, "provider.code_execution", hosts(list200), "net.post{hosts=["+list200+"]}", "net.put{hosts=["+list200+"]}", "net.delete{hosts=["+list200+"]}")
	reads := map[capability.Verb]int{}
	p.Authority = counted{p.Authority, reads}
	for network, want := range map[string]map[capability.Verb]int{
		"": {},
		`,"network_policy":{"type":"allowlist","allowed_domains":["h0.example.com"]}`: {"net.get": 1, "net.post": 1, "net.put": 1, "net.delete": 1},
	} {
		clear(reads)
		body := `{"tools":[` + list(32, func(int) string { return `{"type":"shell","environment":{"type":"container_auto"` + network + `}}` }) + `],"input":""}`
		if out, _, refused := rewrite(t, responses, body, p); refused != nil || out != body || !cmp.Equal(reads, want) {
			t.Errorf("%s: %v, %v", out, reads, refused)
		}
	}
}

// TestLongNameCost: a name that is longer than any is not written in ASCII, which takes time
// that grows with the square of its length: 60 KB kept a processor busy for four seconds.
func TestLongNameCost(t *testing.T) {
	const most = time.Second
	var name strings.Builder
	for i := range 20_000 {
		name.WriteRune('一' + rune(i))
	}
	for _, body := range []string{
		`{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":[%q]}]}`,
		`{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","blocked_domains":[%q]}]}`,
	} {
		start := time.Now()
		out, _, refused := rewrite(t, messages, fmt.Sprintf(body, name.String()), holding(t, "net.get{hosts=[example.com]}"))
		if took := time.Since(start); took > most || strings.Contains(out, name.String()) {
			t.Errorf("it took %s, %v: %.200s", took, refused, out)
		}
	}
}
