package mapping_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

// parseTool reads a mapping that holds one tool, t.
func parseTool(t testing.TB, text string) *mapping.Tool {
	t.Helper()
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools:\n  t: "+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Tool("t")
}

func callOf(t testing.TB, args string) mapping.Call {
	t.Helper()
	c := mapping.Call{Name: "s.t", View: capability.View{Cwd: "/w", Home: "/home/u"}}
	if args == "" {
		return c
	}
	doc, err := wire.Parse([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	c.Args = doc.Root()
	return c
}

// required writes what a call needs, one line for each need, or why it is refused.
func required(t testing.TB, tool *mapping.Tool, args string) string {
	t.Helper()
	needs, err := tool.Require(callOf(t, args))
	if err != nil {
		if refused := (*mapping.Refused)(nil); !errors.As(err, &refused) || len(needs) > 0 {
			t.Fatalf("%s: %v of type %T with %d needs", args, err, err, len(needs))
		}
		return err.Error()
	}
	var lines []string
	for _, n := range needs {
		line := n.Requirement.String()
		if why := n.Requirement.Opaque(); why != "" {
			line = fmt.Sprintf("%s (%s)", n.Requirement.Verb(), why)
		}
		if n.Argument != "" {
			line += " @ " + n.Argument
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestRequire is what R-SEC-03 asks for.
func TestRequire(t *testing.T) {
	const missing = " is missing, and what the tool does without it is not known"
	for _, tt := range []struct {
		name, tool, args, want string
	}{
		{"path", `{path: fs.read}`, `{"path":"a.txt"}`, "fs.read a.txt @ path"},
		{"path missing", `{path: fs.read}`, `{}`, "malformed_arguments: the argument path" + missing},
		{"no arguments at all", `{path: fs.read}`, ``, "malformed_arguments: the argument path" + missing},
		{"null arguments", `{path: fs.read}`, `null`, "malformed_arguments: the argument path" + missing},
		{"null is absent", `{path: fs.read}`, `{"path":null}`, "malformed_arguments: the argument path" + missing},
		{"empty path", `{path: fs.read}`, `{"path":""}`, "malformed_arguments: the argument path is empty"},
		{"arguments that are an array", `{path: fs.read}`, `["a"]`, "malformed_arguments: the call has arguments that are an array, not an object"},
		{"number for a path", `{path: fs.read}`, `{"path":7}`, "malformed_arguments: the argument path is a number, where text belongs"},
		{"boolean for a path", `{path: fs.read}`, `{"path":true}`, "malformed_arguments: the argument path is a boolean, where text belongs"},
		{"array for a path", `{path: fs.read}`, `{"path":["a"]}`, "malformed_arguments: the argument path is an array, where text belongs"},
		{"object for a path", `{path: fs.read}`, `{"path":{"a":1}}`, "malformed_arguments: the argument path is an object, where text belongs"},
		{"argument without a role", `{path: fs.read}`, `{"path":"a","mode":"w"}`, "malformed_arguments: the argument mode is not one that the tool is known to take"},
		{"null argument without a role", `{path: fs.read}`, `{"path":"a","mode":null}`, "malformed_arguments: the argument mode is not one that the tool is known to take"},
		{"argument without a name", `{path: fs.read}`, `{"path":"a","":1}`, `malformed_arguments: the argument "" is not one that the tool is known to take`},
		{"argument with a misleading name", `{path: fs.read}`, `{"path":"a","\u202emode":1}`, `malformed_arguments: the argument "\u202emode" is not one that the tool is known to take`},
		{"case of an argument", `{path: fs.read}`, `{"Path":"a"}`, "malformed_arguments: the argument path" + missing},
		{"free", `{path: fs.read, n: free, o: free}`, `{"path":"a","n":{"x":[1,null]}}`, "fs.read a @ path"},
		{"optional", `{path: fs.read, out: {verb: fs.write, optional: true}}`, `{"path":"a"}`, "fs.read a @ path"},
		{"optional and given", `{path: fs.read, out: {verb: fs.write, optional: true}}`, `{"path":"a","out":"b"}`, "fs.read a @ path\nfs.write b @ out"},
		{"default", `{path: {verb: fs.read, default: .}}`, `{}`, "fs.read . @ path"},
		{"default and given", `{path: {verb: fs.read, default: .}}`, `{"path":"a"}`, "fs.read a @ path"},
		{"default for null", `{path: {verb: fs.read, default: .}}`, `{"path":null}`, "fs.read . @ path"},
		{"default for text that says null", `{path: {verb: fs.read, default: .}}`, `{"path":" null "}`, "fs.read  null  @ path\nfs.read . @ path"},
		{"text that says null", `{path: fs.read}`, `{"path":"null"}`, "malformed_arguments: the argument path is text that can be read as no argument at all, and what the tool takes then is not known"},
		{"text that says null in other spaces", `{path: {verb: fs.read, default: .}}`, "{\"path\":\"\u00a0 \u2003null\"}", "fs.read \ufffd \ufffdnull @ path\nfs.read . @ path"},
		{"text that says null behind an escape", `{path: {verb: fs.read, default: .}}`, `{"path":" \u006e\u0075ll"}`, "fs.read  null @ path\nfs.read . @ path"},
		{"a program's directory that says null", `{argv: proc.exec, cwd: {in: proc.exec, default: sub}}`, `{"argv":["git","status"],"cwd":"null"}`, "malformed_arguments: the argument cwd is text that can be read as no argument at all, and what the tool takes then is not known"},
		{"optional, and text that says null", `{path: {verb: fs.read, optional: true}, x: free}`, `{"path":"null","x":"null"}`, "fs.read null @ path"},
		{"several roles", `{source: [fs.read, fs.delete], destination: fs.write}`, `{"destination":"b","source":"a"}`, "fs.read a @ source\nfs.delete a @ source\nfs.write b @ destination"},
		{"the same argument twice in the call is for the gate", `{path: {verb: fs.read, glob: true}}`, `{"path":"*.go"}`, "fs.read *.go @ path"},
		{"key", `{k: memory.write}`, `{"k":"a"}`, "memory.write a @ k"},
		{"keys of several arguments", `{from: memory.read, to: memory.read}`, `{"from":"a","to":"b"}`, "memory.read a @ from\nmemory.read b @ to"},
		{"key with control characters", `{k: memory.write}`, `{"k":"a\n"}`, "malformed_arguments: the argument k is over 4096 bytes or holds control characters"},
		{"dimensions of one record", `{c: {verb: records.update, dim: class}, id: {verb: records.update, dim: path}}`, `{"c":"inbox","id":"a/b"}`, "records.update inbox a/b @ c"},
		{"the record of an agent", `{c: records.update, id: {verb: records.update, dim: path}}`, `{"c":"agent","id":"agents/scout"}`, "agent.update agents/scout  @ c"},
		{"a record that has no scope", `{id: records.read}`, `{"id":"any/thing"}`, "records.read @ id"},
		{"verb without dimensions", `{code: sandbox.exec}`, `{"code":"print()"}`, "sandbox.exec @ code"},
		{"verb without dimensions, wrong type", `{code: sandbox.exec}`, `{"code":1}`, "malformed_arguments: the argument code is a number, where text belongs"},
		{"tool by an argument", `{tool: tool.invoke}`, `{"tool":"a.b"}`, "tool.invoke a.b @ tool"},
		{"escaped names", `{'a\.b': fs.read, .label: fs.write}`, `{"a.b":"x","label":"y"}`, "fs.read x @ a.b\nfs.write y @ label"},
		{"requires", `{requires: [{net.get: api.github.com}], q: free}`, `{"q":"x"}`, "net.get api.github.com"},
		{
			"requires with a port, a URL and a file", `{requires: [{net.get: ["a.com:443", "https://b.com/x"]}, {fs.read: docs}, "memory.read{key=k}", obs.append, {proc.exec: git status}]}`, ``,
			"net.get a.com:443\nnet.get b.com:443\nfs.read docs\nmemory.read k\nobs.append\nproc.exec git status",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, required(t, parseTool(t, tt.tool), tt.args)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.args, tt.tool, diff)
			}
		})
	}
}

// TestRequireNested is what R-SEC-04 asks for.
func TestRequireNested(t *testing.T) {
	const edits = `{"edits[*].file.path": fs.write, "edits[].text": free}`
	const records = `{"r[*].c": {verb: records.update, dim: class}, "r[*].p": {verb: records.update, dim: path, optional: true}}`
	const either = `{source: fs.read, "source[*]": fs.read}`
	for _, tt := range []struct {
		name, tool, args, want string
	}{
		{"text within that says null", `{"paths[*]": fs.read, "e.n": memory.read}`, `{"paths":["null"],"e":{"n":"null"}}`, "fs.read null @ paths[0]\nmemory.read null @ e.n"},
		{"text that says a list", either, `{"source":" [\"a\"]"}`, "malformed_arguments: the argument source is text that can be read as a list: give the list itself"},
		{"text that says a list to one that takes none", `{a: memory.read, b: free}`, `{"a":"[1]","b":"[1]"}`, "memory.read [1] @ a"},
		{"text that is a glob, and no list", either, `{"source":"[id]"}`, "fs.read [id] @ source"},
		{"each element", `{"paths[*]": fs.read}`, `{"paths":["a","b"]}`, "fs.read a @ paths[0]\nfs.read b @ paths[1]"},
		{"an empty array is absent", `{"paths[*]": fs.read}`, `{"paths":[]}`, "malformed_arguments: the argument paths[*] is missing, and what the tool does without it is not known"},
		{"an empty array with a default", `{"paths[*]": {verb: fs.read, default: .}}`, `{"paths":[]}`, "fs.read . @ paths[*]"},
		{"a null element is absent", `{"paths[*]": fs.read}`, `{"paths":["a",null]}`, "malformed_arguments: the argument paths[1] is missing, and what the tool does without it is not known"},
		{"an element of another type", `{"paths[*]": fs.read}`, `{"paths":["a",["b"]]}`, "malformed_arguments: the argument paths[1] is an array, where text belongs"},
		{"text where an array belongs", `{"paths[*]": fs.read}`, `{"paths":"a"}`, "malformed_arguments: the argument paths is text, where an array belongs"},
		{"nested", edits, `{"edits":[{"file":{"path":"a"},"text":1},{"text":2,"file":{"path":"b"}}]}`, "fs.write a @ edits[0].file.path\nfs.write b @ edits[1].file.path"},
		{"nested and absent", edits, `{}`, "malformed_arguments: the argument edits[*].file.path is missing, and what the tool does without it is not known"},
		{"absent in one element", edits, `{"edits":[{"file":{"path":"a"}},{"file":{}}]}`, "malformed_arguments: the argument edits[1].file.path is missing, and what the tool does without it is not known"},
		{"object absent in one element", edits, `{"edits":[{"text":"x"}]}`, "malformed_arguments: the argument edits[0].file.path is missing, and what the tool does without it is not known"},
		{"unknown in one element", edits, `{"edits":[{"file":{"path":"a","link":"b"}}]}`, "malformed_arguments: the argument edits[0].file.link is not one that the tool is known to take"},
		{"an array where an object belongs", edits, `{"edits":[[1]]}`, "malformed_arguments: the argument edits[0] is an array, where an object belongs"},
		{"an object where an array belongs", edits, `{"edits":{"0":{}}}`, "malformed_arguments: the argument edits is an object, where an array belongs"},
		{"one or many: one", either, `{"source":"a"}`, "fs.read a @ source"},
		{"one or many: many", either, `{"source":["a","b"]}`, "fs.read a @ source[0]\nfs.read b @ source[1]"},
		{"one or many: none", either, `{"source":[]}`, "malformed_arguments: the argument source is missing, and what the tool does without it is not known"},
		{"arrays in arrays", `{"m[*][*].p": fs.read}`, `{"m":[[{"p":"a"}],[{"p":"b"},{"p":"c"}]]}`, "fs.read a @ m[0][0].p\nfs.read b @ m[1][0].p\nfs.read c @ m[1][1].p"},
		{
			"words that may belong together", `{"r[*].c": {verb: records.update, dim: class}, "r[*].p": {verb: records.update, dim: path}}`, `{"r":[{"c":"a","p":"x"},{"c":"b","p":"y"}]}`,
			"records.update a x @ r[0].c\nrecords.update b x @ r[1].c\nrecords.update a y @ r[0].c\nrecords.update b y @ r[1].c",
		},
		{
			"a word left out in one element", records, `{"r":[{"c":"a","p":"x"},{"c":"b"}]}`,
			"records.update a x @ r[0].c\nrecords.update b x @ r[1].c\nrecords.update a  @ r[0].c\nrecords.update b  @ r[1].c",
		},
		{"a word left out in all", records, `{"r":[{"c":"a"},{"c":"b"}]}`, "records.update a  @ r[0].c\nrecords.update b  @ r[1].c"},
		{"a key left out where others stand", `{a: memory.read, b: {verb: memory.read, optional: true}}`, `{"a":"x"}`, "memory.read x @ a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, required(t, parseTool(t, tt.tool), tt.args)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.args, tt.tool, diff)
			}
		})
	}
}

func TestRequireNet(t *testing.T) {
	const byMethod = `{url: {verb: net, method: m}}`
	for _, tt := range []struct {
		name, tool, args, want string
	}{
		{"URL", `{url: net.get}`, `{"url":"https://a.com/x"}`, "net.get a.com:443 @ url"},
		{"no URL", `{url: net.get}`, `{"url":"a.com"}`, "net.get (the URL does not begin with http:// or https://) @ url"},
		{"control characters", `{url: net.get}`, `{"url":"https://a.com\n"}`, "malformed_arguments: the argument url holds a control character"},
		{"host", `{host: {verb: net.get, as: host}}`, `{"host":"a.com"}`, "net.get a.com @ host"},
		{"connect", `{addr: net.connect}`, `{"addr":"a.com:5432"}`, "net.connect a.com:5432 @ addr"},
		{"connect by URL", `{proxy: {verb: net.connect, as: url}}`, `{"proxy":"http://p.com:3128"}`, "net.connect p.com:3128 @ proxy"},
		{"get", byMethod, `{"url":"https://a.com","m":"GET"}`, "net.get a.com:443 @ url"},
		{"head counts as get", byMethod, `{"url":"https://a.com","m":"head"}`, "net.get a.com:443 @ url"},
		{"post", byMethod, `{"m":"Post","url":"https://a.com"}`, "net.post a.com:443 @ url"},
		{"put", byMethod, `{"url":"https://a.com","m":"PUT"}`, "net.put a.com:443 @ url"},
		{"delete", byMethod, `{"url":"https://a.com","m":"DELETE"}`, "net.delete a.com:443 @ url"},
		{"another method", byMethod, `{"url":"https://a.com","m":"PATCH"}`, "scope_violation: the argument m names the method PATCH, which no verb allows"},
		{"a method that folds to one", byMethod, `{"url":"https://a.com","m":"PO\u017fT"}`, `scope_violation: the argument m names the method "PO\u017fT", which no verb allows`},
		{"a method with a space", byMethod, `{"url":"https://a.com","m":" GET"}`, `scope_violation: the argument m names the method " GET", which no verb allows`},
		{"no method", byMethod, `{"url":"https://a.com"}`, "malformed_arguments: the argument m is missing, and the method that the tool uses instead is not known"},
		{"no method, which is known", `{url: {verb: net, method: m, default: GET}}`, `{"url":"https://a.com","m":null}`, "net.get a.com:443 @ url"},
		{"a method of another type", byMethod, `{"url":"https://a.com","m":["GET"]}`, "malformed_arguments: the argument m is an array, where text belongs"},
		{"a method, and a role of its own", `{url: {verb: net, method: m, default: GET}, m: [memory.read]}`, `{"url":"https://a.com","m":"get"}`, "net.get a.com:443 @ url\nmemory.read get @ m"},
		{"methods beside the URLs", `{"r[*].url": {verb: net, method: m}}`, `{"r":[{"url":"https://a.com","m":"get"},{"m":"post","url":"https://b.com"}]}`, "net.get a.com:443 @ r[0].url\nnet.post b.com:443 @ r[1].url"},
		{"one method for many URLs", `{"urls[*]": {verb: net, method: m}}`, `{"urls":["https://a.com","https://b.com"],"m":"put"}`, "net.put a.com:443 @ urls[0]\nnet.put b.com:443 @ urls[1]"},
		{"headers", `{url: net.get, h: {headers: [Accept, X-Trace]}}`, `{"url":"https://a.com","h":{"ACCEPT":"x","x-trace":"y"}}`, "net.get a.com:443 @ url"},
		{"no headers", `{url: net.get, h: {headers: []}}`, `{"url":"https://a.com","h":{}}`, "net.get a.com:443 @ url"},
		{"a header that is not listed", `{url: net.get, h: {headers: [Accept]}}`, `{"url":"https://a.com","h":{"Host":"b.com"}}`, "scope_violation: the argument h.Host is a header that the tool may not be given"},
		{"a header that folds to one that is listed", `{url: net.get, h: {headers: [X-Track]}}`, `{"url":"https://a.com","h":{"X-Trac\u212a":"b"}}`, `scope_violation: the argument h."X-Trac\u212a" is a header that the tool may not be given`},
		{"a header of another type", `{url: net.get, h: {headers: [Accept]}}`, `{"url":"https://a.com","h":{"Accept":["a","b"]}}`, "malformed_arguments: the argument h.Accept is an array, where text belongs"},
		{"a header that ends early", `{url: net.get, h: {headers: [Accept]}}`, `{"url":"https://a.com","h":{"Accept":"a\r\nHost: b"}}`, "malformed_arguments: the argument h.Accept holds line breaks or other control characters"},
		{"headers as text", `{url: net.get, h: {headers: [Accept]}}`, `{"url":"https://a.com","h":"Accept: a"}`, "malformed_arguments: the argument h is text, where an object of headers belongs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, required(t, parseTool(t, tt.tool), tt.args)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.args, tt.tool, diff)
			}
		})
	}
}

func TestRequireProgram(t *testing.T) {
	const run = `{command: {argv0: proc.exec}, "args[*]": {argv: proc.exec}, cwd: {in: proc.exec}, env: {env: proc.exec}}`
	const environment = "proc.exec (the call sets environment variables of the program) @ env"
	for _, tt := range []struct {
		name, tool, args, want string
	}{
		{"argv", `{argv: proc.exec}`, `{"argv":["git","status"]}`, "proc.exec git status @ argv"},
		{"plain words", `{cmd: proc.exec}`, `{"cmd":"git status"}`, "proc.exec git status @ cmd"},
		{"not plain words", `{cmd: proc.exec}`, `{"cmd":"git status | sh"}`, "proc.exec (the command line needs a shell, which is proc.eval) @ cmd"},
		{"a line of its own", `{cmd: proc.exec}`, `{"cmd":"git\nid"}`, "malformed_arguments: the argument cmd holds line breaks or other control characters"},
		{"empty argv", `{argv: proc.exec}`, `{"argv":[]}`, "malformed_arguments: the argument argv names no program"},
		{"argv with a number", `{argv: proc.exec}`, `{"argv":["git",1]}`, "malformed_arguments: the argument argv is an array, where an array of nothing but text belongs"},
		{"argv with an object", `{argv: proc.exec}`, `{"argv":{"0":"git"}}`, "malformed_arguments: the argument argv is an object, where text belongs"},
		{"shell line", `{cmd: proc.eval}`, `{"cmd":"a | b"}`, "proc.eval a | b @ cmd"},
		{"argv for a shell", `{cmd: proc.eval}`, `{"cmd":["a"]}`, "malformed_arguments: the argument cmd is an array, where text belongs"},
		{"empty line", `{cmd: proc.eval}`, `{"cmd":"  "}`, "malformed_arguments: the argument cmd is no command line"},
		{"several commands", `{"cmds[*]": proc.exec}`, `{"cmds":["git log","rg x"]}`, "proc.exec git log @ cmds[0]\nproc.exec rg x @ cmds[1]"},
		{"parts", run, `{"args":["status"],"command":"git"}`, "proc.exec git status @ command"},
		{"parts without arguments", run, `{"command":"git"}`, "proc.exec git @ command"},
		{"parts with no arguments", run, `{"command":"git","args":[]}`, "proc.exec git @ command"},
		{"parts without a program", run, `{"args":["git"]}`, "malformed_arguments: the argument command is missing, and what the tool does without it is not known"},
		{"arguments as text", run, `{"command":"git","args":"status"}`, "malformed_arguments: the argument args is text, where an array of text belongs"},
		{"program as an array", run, `{"command":["git"]}`, "malformed_arguments: the argument command is an array, where text belongs"},
		{"directory", run, `{"command":"git","cwd":"/x"}`, "proc.exec git @ command"},
		{"directory of another type", run, `{"command":"git","cwd":1}`, "malformed_arguments: the argument cwd is a number, where text belongs"},
		{"directory that cannot be read", run, `{"command":"git","cwd":""}`, "malformed_arguments: the argument cwd is empty"},
		{"environment", run, `{"command":"git","env":{"A":"b"}}`, environment + "\nproc.exec git @ command"},
		{"environment as a list", run, `{"command":"git","env":["A=b"]}`, environment + "\nproc.exec git @ command"},
		{"environment as text", run, `{"command":"git","env":"A=b"}`, "malformed_arguments: the argument env is text, where an object belongs"},
		{"no environment", run, `{"command":"git","env":{}}`, "proc.exec git @ command"},
		{"argv alone", `{args: {argv: proc.exec}}`, `{"args":["git"]}`, "proc.exec git @ args"},
		{"argv alone, absent", `{args: {argv: proc.exec}}`, `{}`, "malformed_arguments: the argument args is missing, and what the tool does without it is not known"},
		{"argv alone, with a default", `{args: {argv: proc.exec, default: [git, status]}}`, `{}`, "proc.exec git status @ args"},
		{"directory with a default", `{cmd: proc.eval, cwd: {in: proc.eval, default: /srv}}`, `{"cmd":"a"}`, "proc.eval a @ cmd"},
		{"directory without a program", `{cmd: {verb: proc.eval, optional: true}, cwd: {in: proc.eval}}`, `{"cwd":"/x"}`, "malformed_arguments: the argument cwd is the directory of a program, and the call names none"},
		{"environment without a program", `{cmd: {verb: proc.eval, optional: true}, env: {env: proc.eval}}`, `{"env":{}}`, "malformed_arguments: the argument env is the environment of a program, and the call names none"},
		{"both kinds", `{cmd: proc.eval, argv: proc.exec}`, `{"argv":["git"],"cmd":"a;b"}`, "proc.exec git @ argv\nproc.eval a;b @ cmd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, required(t, parseTool(t, tt.tool), tt.args)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.args, tt.tool, diff)
			}
		})
	}
}

// TestDirectory proves where a program runs: the requirement does not show it.
func TestDirectory(t *testing.T) {
	set, all := compile(t, "proc.eval{in=/w}"), compile(t, "proc.eval{in=/}")
	tool := parseTool(t, `{cmd: proc.eval, cwd: {in: proc.eval}}`)
	stays := parseTool(t, `{cmd: proc.eval, cwd: {in: proc.eval, default: /srv}}`)
	for _, tt := range []struct {
		name string
		tool *mapping.Tool
		args string
		cwd  string
		want string
	}{
		{"the upstream's own", tool, `{"cmd":"a"}`, "/w", allow},
		{"the upstream's own, elsewhere", tool, `{"cmd":"a"}`, "/x", "scope_violation"},
		{"the upstream's own, not known", tool, `{"cmd":"a"}`, "", "scope_violation"},
		{"named", tool, `{"cmd":"a","cwd":"/w/sub"}`, "/x", allow},
		{"named with a slash", tool, `{"cmd":"a","cwd":"/w/sub/"}`, "/x", allow},
		{"named elsewhere", tool, `{"cmd":"a","cwd":"/x"}`, "/w", "scope_violation"},
		{"named beneath", tool, `{"cmd":"a","cwd":"sub"}`, "/w", allow},
		{"named above", tool, `{"cmd":"a","cwd":".."}`, "/w", "scope_violation"},
		{"the default", stays, `{"cmd":"a"}`, "/w", "scope_violation"},
		{"named instead of the default", stays, `{"cmd":"a","cwd":"/w"}`, "/x", allow},
	} {
		c := callOf(t, tt.args)
		c.View.Cwd = tt.cwd
		needs, err := tt.tool.Require(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := answerAll(set, needs); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got := answerAll(all, needs); (got == allow) != (tt.cwd != "") {
			t.Errorf("%s: got %s where any directory is held", tt.name, got)
		}
	}
}

// TestRequiresView proves that a fixed requirement is read as the upstream reads
// it, not as it was read at load.
func TestRequiresView(t *testing.T) {
	tool := parseTool(t, `{requires: [{fs.read: docs}, {proc.eval: ls}]}`)
	set := compile(t, "fs.read{in=/w/docs}", "proc.eval{in=/w}")
	for cwd, want := range map[string]string{"/w": allow, "/": "scope_violation", "/x": "scope_violation", "": "scope_violation"} {
		c := callOf(t, "")
		c.View.Cwd = cwd
		needs, err := tool.Require(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needs {
			if got := answerAll(set, []mapping.Need{n}); got != want {
				t.Errorf("%s in %q: got %s, want %s", n.Requirement, cwd, got, want)
			}
		}
	}
}

// TestRequiresTold: a program for which the call names no directory may run in each
// that the upstream is told to work in, and reads files from there (R-SEC-05).
func TestRequiresTold(t *testing.T) {
	for _, text := range []string{`{cmd: proc.exec}`, `{requires: [{proc.exec: cat notes}], cmd: free}`} {
		tool := parseTool(t, text)
		for grants, want := range map[string]string{
			"proc.exec{in=/w,cmds=[cat]}":    "scope_violation",
			"proc.exec{in=/told,cmds=[cat]}": "scope_violation",
			"proc.exec{in=/,cmds=[cat]}":     allow,
		} {
			c := callOf(t, `{"cmd":"cat notes"}`)
			c.View.Cwd, c.View.Told = "/w", []string{"/told"}
			got, err := tool.Require(c)
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			if got := answerAll(compile(t, grants), got); got != want {
				t.Errorf("%s, %s: got %s, want %s", text, grants, got, want)
			}
		}
	}
}

func compile(t testing.TB, texts ...string) *capability.Set {
	t.Helper()
	var specs []capability.Spec
	for _, text := range texts {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	set, findings := capability.Compile(specs, capability.Options{})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return set
}

// answerAll decides needs that must all be allowed.
func answerAll(set *capability.Set, needs []mapping.Need) string {
	for _, n := range needs {
		if d := set.Decide(n.Requirement); !d.Allowed() {
			return string(d.Code)
		}
	}
	return allow
}

// TestRequireOfBuiltin: who reads text as text needs nothing else for one that says null.
func TestRequireOfBuiltin(t *testing.T) {
	args, err := wire.Parse([]byte(`{"path":"null"}`))
	if err != nil {
		t.Fatal(err)
	}
	needs, err := parseTool(t, `{path: fs.read}`).Require(mapping.Call{Name: "s.t", Args: args.Root(), View: capability.View{Cwd: "/w", Plain: true}})
	if err != nil || len(needs) != 1 {
		t.Errorf("%v, %v", needs, err)
	}
}
