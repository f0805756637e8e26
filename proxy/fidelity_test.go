package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/proxy"
)

// caller is an agent that may call every tool, whatever its arguments.
const caller = `---
class: agent
capabilities:
  - tool.invoke: { tools: ["*"] }
---
`

// raw makes a request as it is written, in either era. The params are members.
func (c *client) raw(modern bool, id, method, params, meta string) said {
	c.w.t.Helper()
	var p struct{ Name string }
	if err := json.Unmarshal([]byte("{"+params+"}"), &p); err != nil {
		c.w.t.Fatal(err)
	}
	var headers []string
	if modern {
		headers = []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
		if p.Name != "" {
			headers = append(headers, "Mcp-Name", p.Name)
		}
		if meta != "" {
			meta += ","
		}
		meta += `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	}
	if params != "" {
		params += ","
	}
	return take(c.w.t, c.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+`"_meta":{`+meta+`}}}`, headers...))
}

// route is a way from an agent to a server and back.
type route struct {
	agent, server bool // of the modern era
	transport     string
}

func (r route) String() string {
	era := map[bool]string{true: "modern", false: "legacy"}
	return era[r.agent] + " agent, " + era[r.server] + " server, " + r.transport
}

func (r route) oneLine() bool { return r.transport == "stdio" }

func routes() (all []route) {
	for _, transport := range []string{"json", "events", "stdio"} {
		for _, server := range []bool{false, true} {
			for _, agent := range []bool{false, true} {
				all = append(all, route{agent, server, transport})
			}
		}
	}
	return all
}

const (
	given = 20 * time.Second // that a call may take, on a busy machine
	early = 15 * time.Second // before that time is up
)

// travel brings a gateway up before a server, and an agent that speaks to it.
func (r route) travel(t *testing.T, s *script) *client {
	t.Helper()
	s.Modern = r.server
	u := s.over(t, "up", r.transport)
	u.Timeout = given
	c := start(t, map[string]string{"scout": caller}, u).client("scout")
	if !r.agent {
		c.initialize("{}")
	}
	eventually(t, given, "the server is there", func() bool { return len(listed(t, c, r.agent)) == len(s.Tools) })
	return c
}

// plain is a definition without anything to it.
func plain(name string) []byte { return []byte(tool(name)) }

// spaced is a message as it is on a transport that ends one at a line break.
func spaced(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }

// oddResults are results and errors that a typed copy would lose something of.
func oddResults() map[string]string {
	return map[string]string{
		"unknown_content":  `"result":{"content":[{"type":"hologram","depth":3,"of":[{}]}]}`,
		"unknown_members":  `"result":{"zz":[null],"content":[{"type":"text","text":"a","zz":1,"aa":2}],"aa":{"b":1}}`,
		"numbers":          `"result":{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0,"e":1E+2,"z":-0,"long":123456789012345678901234567890}}`,
		"order":            `"result":{"isError":false,"_meta":{"b":1,"a":2},"content":[{"text":"a","type":"text"}]}`,
		"whitespace":       `"result": { "content" : [ { "type":"text" ,	"text":"a" } ] , "b" :1 }`,
		"breaks":           "\"result\": {\n\t\"content\": [\n\t],\r\n\t\"b\": 1\n}",
		"meta":             `"result":{"content":[],"_meta":{"x/y":{"n":1e2},"progressToken":9007199254740993}}`,
		"structured_list":  `"result":{"content":[],"structuredContent":[1,"a",null]}`,
		"structured_null":  `"result":{"content":[],"structuredContent":null}`,
		"structured_text":  `"result":{"content":[],"structuredContent":"a"}`,
		"structured_false": `"result":{"content":[],"structuredContent":false}`,
		"empty":            `"result":{}`,
		"escapes":          `"result":{"content":[{"type":"text","text":"\u00e9\/\ud83d\ude00<>&\u2028 é😀` + "\u2028" + `\b\f"}],"\u0061":1}`,
		"is_error":         `"result":{"content":[{"type":"text","text":"no"}],"isError":true}`,
		"complete":         `"result":{"content":[],"resultType":"complete","x":1}`,
		"no_content":       `"result":{"contents":"none"}`,
		"error":            `"error":{"code":-32000,"message":"no"}`,
		"error_data":       `"error":{ "message":"n\u006f", "code":-32050,"data":{"n":9007199254740993 , "a":[1.0]},"more":{"x":1} }`,
		"error_method":     `"error":{"code":-32601,"message":"no such method, says the tool","data":null}`,
		"nul":              `"result":{"content":[{"type":"text","text":"a\u0000b"},{"type":"resource","resource":{"uri":"f:/a","text":"\u0000"}}]}`,
		"surrogate":        `"result":{"content":[{"type":"text","text":"\ud800"},{"type":"text","text":"\ude00\ud83d"}]}`,
		"case_structured":  `"result":{"content":[],"structuredContent":{"Path":"/bin","PATH":"/usr/bin","in":[{"id":"\u0000","ID":"\udfff"}]}}`,
		"case_error_data":  `"error":{"code":-32000,"message":"\u0000","data":{"Path":"/bin","PATH":"\ud800"}}`,
		"large":            `"result":{"content":[{"type":"text","text":"` + strings.Repeat("0123456789abcdef", 20<<20/16) + `"}]}`,
	}
}

// TestFidelityResults: what a server answers is what the agent gets, byte by byte.
func TestFidelityResults(t *testing.T) {
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{Answers: map[string][]byte{}}
			for name, member := range oddResults() {
				if r.oneLine() {
					member = spaced(member)
				}
				s.Tools = append(s.Tools, plain(name))
				s.Answers[name] = []byte(member)
			}
			c := r.travel(t, s)
			for name, member := range s.Answers {
				a := c.raw(r.agent, "7", "tools/call", `"name":"up__`+name+`","arguments":{}`, "")
				kind, want, _ := strings.Cut(string(member), ":")
				want = strings.TrimSpace(want)
				if r.transport == "events" {
					want = strings.ReplaceAll(want, "\r\n", "\n") // there a line break is a line break
				}
				if got := answered(t, a, kind); !sameBut(r.agent, got, want) {
					t.Errorf("%s: got %.300q, want %.300q", name, got, want)
				}
			}
		})
	}
}

// TestFidelityOwnType: what a legacy server calls resultType is a word of its own. A modern
// agent is told that the result is complete; a question it cannot be for either.
func TestFidelityOwnType(t *testing.T) {
	for _, r := range routes() {
		if r.server {
			continue // which has to know better: see TestFidelityUnreadable
		}
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{Tools: [][]byte{plain("own"), plain("asks")}, Answers: map[string][]byte{
				"own":  []byte(`"result":{"content":[], "resultType" : "table","rows":[ 1e2 ]}`),
				"asks": []byte(`"result":{"content":[],"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}}}}`),
			}}
			c := r.travel(t, s)
			want := map[bool]string{
				false: `{"content":[], "resultType" : "table","rows":[ 1e2 ]}`, true: `{"content":[], "resultType" : "complete","rows":[ 1e2 ]}`,
			}[r.agent]
			if got := answered(t, c.raw(r.agent, "7", "tools/call", `"name":"up__own"`, ""), "result"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if a := c.raw(r.agent, "8", "tools/call", `"name":"up__asks"`, ""); strings.Contains(a.Raw, "inputRequests") {
				t.Errorf("asked in a result: %s", a.Raw)
			}
		})
	}
}

// answered is the member of an answer that tells its kind, as it was written.
func answered(t *testing.T, a said, kind string) string {
	t.Helper()
	var members map[string]json.RawMessage
	_, body, ok := strings.Cut(a.Raw, "data: ")
	if !ok || a.Raw[0] == '{' {
		body = a.Raw
	}
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatalf("%.300s: %v", a.Raw, err)
	}
	return string(members[strings.Trim(kind, `"`)])
}

// sameBut reports whether a result is the same, but for the member that the modern
// era wants and that the server did not write.
func sameBut(modern bool, got, want string) bool {
	if got == want {
		return true
	}
	const complete = `{"resultType":"complete"`
	rest, added := strings.CutPrefix(got, complete)
	if !modern || !added || strings.Contains(want, "resultType") {
		return false
	}
	return strings.TrimPrefix(rest, ",") == strings.TrimLeft(want[1:], " \t\r\n")
}

// TestFidelityUnreadable: what parsers read in different ways is passed to nobody.
func TestFidelityUnreadable(t *testing.T) {
	members := map[string]string{
		"no_utf8":       "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}",
		"overlong":      "\"result\":{\"content\":[],\"a\":\"\xc0\xaf\"}",
		"duplicate":     `"result":{"content":[],"a":1,"a":2}`,
		"deep":          `"result":{"content":[{"x":{"k":1,"\u006b":2}}]}`,
		"case":          `"result":{"content":[],"Content":[]}`,
		"case_type":     `"result":{"content":[],"resultType":"complete","ResultType":"input_required"}`,
		"case_block":    `"result":{"content":[{"type":"text","text":"a","Text":"b"}]}`,
		"case_error":    `"error":{"code":1,"message":"a","Code":-32042}`,
		"case_pages":    `"error":{"code":-32042,"message":"a","data":{"elicitations":[],"Elicitations":[{}]}}`,
		"nul_uri":       `"result":{"content":[{"type":"resource","resource":{"uri":"f:/\u0000","text":"a"}}]}`,
		"raw_nul":       "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\x00\"}]}",
		"control":       "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\x1b\"}]}",
		"list":          `"result":[]`,
		"null":          `"result":null`,
		"text":          `"result":"a"`,
		"both":          `"result":{},"error":{"code":1,"message":"a"}`,
		"neither":       `"results":{}`,
		"no_code":       `"error":{"message":"a"}`,
		"result_twice":  `"result":{},"result":{"content":[]}`,
		"half":          `"result":{"content":[`,
		"type_number":   `"result":{"content":[],"resultType":7}`,
		"infinite":      `"result":{"n":1e400}`,
		"leading_zeros": `"result":{"n":007}`,
	}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{Answers: map[string][]byte{}}
			members := maps.Clone(members)
			if r.server {
				members["type_unknown"] = `"result":{"content":[],"resultType":"other"}`
			}
			for name, member := range members {
				s.Tools = append(s.Tools, plain(name))
				s.Answers[name] = []byte(member)
			}
			c := r.travel(t, s)
			for name := range members {
				begun := time.Now()
				a := c.raw(r.agent, "7", "tools/call", `"name":"up__`+name+`"`, "")
				if d := denialOf(t, a); d.Code != "upstream_failed" || !strings.Contains(a.Raw, `upstream \"up\"`) {
					t.Errorf("%s: %.300q", name, a.Raw)
				}
				if took := time.Since(begun); took > early {
					t.Fatalf("%s: the agent learns of it after %v, when the time of the call is up", name, took)
				}
			}
		})
	}
}

// TestFidelityFlaws: a definition that can be read in two ways is hidden, and no other. The
// names of its arguments may differ in case.
func TestFidelityFlaws(t *testing.T) {
	entry := func(name, members string) []byte {
		return []byte(`{"name":"` + name + `","inputSchema":{"type":"object","properties":{"id":{},"ID":{}},"$defs":{"a":{"properties":{"x":{},"X":{}}},"A":{}}},` + members + `}`)
	}
	want := [][]byte{plain("plain"), entry("case", `"outputSchema":{"type":"object","properties":{"Path":{},"PATH":{}}}`)}
	hidden := map[string]string{
		"nul": `"description":"\u0000"`, "surrogate": `"title":"\ud800"`, "name": `"Name":"case"`, "meta": `"_meta":{"a":1,"A":2}`,
		"keyword": `"outputSchema":{"type":"object","$ref":"#/a","$Ref":"#/b"}`, "default": `"outputSchema":{"default":{"properties":{"a":1,"A":2}}}`,
		"inner": `"outputSchema":{"properties":{"a":{"type":"string","Type":"object"}}}`, "nul_name": `"outputSchema":{"properties":{"a\u0000":{}}}`,
	}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{Tools: slices.Clone(want)}
			c := r.travel(t, s)
			got := listed(t, c, r.agent)
			if def := strings.Replace(string(want[1]), `"case"`, `"up__case"`, 1); string(got["up__case"]) != def {
				t.Errorf("got %s, want %s", got["up__case"], def)
			}
			a := c.raw(r.agent, "1", "tools/call", `"name":"up__case","arguments":{"ID":1}`, "")
			if !strings.Contains(a.Raw, `"got"`) {
				t.Errorf("got %s", a.Raw)
			}
		})
	}
	s := &script{Tools: slices.Clone(want)}
	for name, members := range hidden {
		s.Tools = append(s.Tools, entry(name, members))
	}
	w := start(t, map[string]string{"scout": caller}, s.over(t, "up", "stdio"))
	c := w.client("scout")
	eventually(t, given, "the server is there", func() bool { return len(listed(t, c, true)) == len(want) })
	for name := range hidden {
		a := c.raw(true, "1", "tools/call", `"name":"up__`+name+`","arguments":{}`, "")
		if d := denialOf(t, a); d.Code != "tool_rejected" {
			t.Errorf("%s: %s", name, a.Raw)
		}
	}
}

// TestFidelityArguments: what an agent writes is what the server gets.
func TestFidelityArguments(t *testing.T) {
	arguments := []string{
		`{}`, `{ }`, `{ "path" : "a" ,	"n":1 }`, "{\n\t\"a\": [\r\n1 ]\n}",
		`{"n":12345678901234567890,"f":1.0,"e":1E+2,"z":-0,"s":0.10}`,
		`{"s":"\u0041\/\ud83d\ude00\u2028é😀<>&\b","\u00e9":1,"":2}`,
		`{"z":1,"a":{"y":[],"b":null},"m":[true,false,[[]]]}`,
		strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60),
		`{"text":"` + strings.Repeat("x", 1<<20) + `"}`,
	}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			c := r.travel(t, &script{Tools: [][]byte{plain("echo")}})
			for _, want := range arguments {
				a := c.raw(r.agent, "1", "tools/call", `"name":"up__echo","arguments":`+want, "")
				var result struct{ Got []byte }
				if err := json.Unmarshal(a.Result, &result); err != nil {
					t.Fatalf("%.200s: %v", a.Raw, err)
				}
				if r.oneLine() {
					want = spaced(want)
				}
				if string(result.Got) != want {
					t.Errorf("got %.200q, want %.200q", result.Got, want)
				}
			}
		})
	}
}

// TestFidelityIDs: an id comes back as it was written, and so does the token of
// what is said before the answer.
func TestFidelityIDs(t *testing.T) {
	ids := []string{
		`0`, `-1`, `-0`, `9007199254740993`, `123456789012345678901234567890`, `""`, `"a\"b"`, `"é😀"`, `"\u00e9\ud83d\ude00"`, `"1"`, `" "`,
		`"` + strings.Repeat("x", 200) + `"`,
	}
	tokens := []string{``, `"t"`, `0`, `9007199254740993`, `"\u00e9\""`, `""`}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			c := r.travel(t, &script{Tools: [][]byte{plain("echo")}, Progress: 3})
			for _, id := range ids {
				for _, token := range tokens {
					checkID(t, c, r, id, token)
				}
			}
		})
	}
}

func checkID(t *testing.T, c *client, r route, id, token string) {
	t.Helper()
	meta := ""
	if token != "" {
		meta = `"progressToken":` + token
	}
	a := c.raw(r.agent, id, "tools/call", `"name":"up__echo","arguments":{}`, meta)
	if string(a.ID) != id || a.Result == nil {
		t.Errorf("id %s, token %s: %.300s", id, token, a.Raw)
	}
	var want []string
	for i := range 3 {
		if token != "" {
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
		}
	}
	if !slices.Equal(a.Before, want) {
		t.Errorf("id %s: before the answer came %q, not %q", id, a.Before, want)
	}
}

// TestFidelityDefinitions: what real servers say of their tools is what agents
// read, but for the name.
func TestFidelityDefinitions(t *testing.T) {
	servers := map[string]*script{}
	want := map[string]string{} // most are written over many lines
	for at, def := range realDefinitions(t) {
		file, _, _ := strings.Cut(at, ".json")
		s := servers[file]
		if s == nil {
			s = new(script)
			servers[file] = s
		}
		s.Tools = append(s.Tools, def)
		var named struct{ Name string }
		if err := json.Unmarshal(def, &named); err != nil {
			t.Fatal(err)
		}
		want[file+"__"+strings.ReplaceAll(named.Name, ".", "_")] = string(def)
	}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			var ups []*proxy.Upstream
			for name, s := range servers {
				one := *s
				one.Modern = r.server
				if r.oneLine() {
					one.Tools = nil
					for _, def := range s.Tools {
						one.Tools = append(one.Tools, []byte(spaced(string(def))))
					}
				}
				ups = append(ups, one.over(t, name, r.transport))
			}
			c := start(t, map[string]string{"scout": caller}, ups...).client("scout")
			if !r.agent {
				c.initialize("{}")
			}
			var shown map[string]json.RawMessage
			eventually(t, given, "all servers are there", func() bool {
				shown = listed(t, c, r.agent)
				return len(shown) >= len(want)
			})
			for name, def := range want {
				if r.oneLine() {
					def = spaced(def)
				}
				if !renamedOnly(shown[name], []byte(def), name) {
					t.Errorf("%s: %.300s, want %.300s", name, shown[name], def)
				}
			}
			if len(shown) != len(want) {
				t.Errorf("%d tools are shown, want %d", len(shown), len(want))
			}
		})
	}
}

// listed returns the definitions that an agent is shown, on all pages.
func listed(t *testing.T, c *client, modern bool) map[string]json.RawMessage {
	t.Helper()
	all := map[string]json.RawMessage{}
	for cursor := ""; ; {
		a := c.raw(modern, "1", "tools/list", cursor, "")
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(a.Result, &page); err != nil {
			t.Fatalf("%.300s: %v", a.Raw, err)
		}
		for _, def := range page.Tools {
			var named struct{ Name string }
			if err := json.Unmarshal(def, &named); err != nil {
				t.Fatal(err)
			}
			all[named.Name] = def
		}
		if page.NextCursor == "" {
			return all
		}
		cursor = `"cursor":"` + page.NextCursor + `"`
	}
}

// renamedOnly reports whether a definition is another one under a new name.
func renamedOnly(got, want []byte, name string) bool {
	var named struct{ Name json.RawMessage }
	if json.Unmarshal(want, &named) != nil {
		return false
	}
	for at := 0; at < len(want); at++ {
		next := bytes.Index(want[at:], named.Name)
		if next < 0 {
			return false
		}
		at += next
		if string(want[:at])+`"`+name+`"`+string(want[at+len(named.Name):]) == string(got) {
			return true
		}
	}
	return false
}
