package mapping_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/mapping"
)

// TestParseErrors holds the whole text of each error: where it is, what is the
// case, what to do.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "m.yml: the mapping is empty"},
		{"# nothing\n", "m.yml: the mapping is empty"},
		{"[a]", "m.yml:1:1: a mapping is a map with server: and tools:, not a list"},
		{"null", "m.yml:1:1: a mapping is a map with server: and tools:, not nothing"},
		{"server: s", "m.yml:1:1: the mapping has no tools; add tools:"},
		{"tools: {}", "m.yml:1:1: the mapping names no server; add server: with the name of the kind of server"},
		{"server: 7\ntools: {}", "m.yml:1:9: server: takes text, not a number"},
		{"server: \" \"\ntools: {}", "m.yml:1:9: server: takes text, and there is none"},
		{"server: s\ntools: [a]", "m.yml:2:8: tools: takes a map of tools, not a list"},
		{"server: s\ntools:\n", "m.yml:2:7: tools: takes a map of tools, not nothing"},
		{"server: s\ntool: {}", "m.yml:2:1: \"tool\" is no key of a mapping; did you mean tools?"},
		{"server: s\nhosts: {}", "m.yml:2:1: \"hosts\" is no key of a mapping; it is one of server, tools, prompts, resources, declares"},
		{"server: s\nprompts: {}", "m.yml:1:1: the mapping has no tools; add tools:"},
		{"server: s\nprompts: [a]", "m.yml:2:10: prompts: takes a map of prompts, not a list"},
		{"server: s\nprompts: {p: free}", "m.yml:2:14: a prompt is a map of its arguments, not text; write {} for a prompt without arguments"},
		{"server: s\nprompts: {\"\": {}}", "m.yml:2:11: the name of a prompt is empty, over 256 bytes or holds control characters"},
		{"server: s\nresources: {}", "m.yml:1:1: the mapping has no tools; add tools:"},
		{"server: s\nresources: [file]", "m.yml:2:12: resources: takes a map of at most 512 URIs and schemes"},
		{"server: s\nresources: {Notes: resource.read, x: resource.read}", "m.yml:2:35: \"x\" is no scheme, no URI and not what URIs begin with; write notes, notes://all or notes://work/*"},
		{"server: s\nresources: {\"notes://{id}\": resource.read}", "m.yml:2:13: \"notes://{id}\" is no scheme, no URI and not what URIs begin with; write notes, notes://all or notes://work/*"},
		{"server: s\nresources: {\"NOTES://a\": resource.read}", "m.yml:2:13: \"NOTES://a\" is no scheme, no URI and not what URIs begin with; write notes, notes://all or notes://work/*"},
		{"server: s\nresources: {\"notes://a//b/*\": resource.read}", "m.yml:2:13: the URI \"notes://a//b/*\" has a segment that is empty, or ends or begins with what some servers leave out; write notes, or what is read in one way"},
		{"server: s\nresources: {notes: free}", "m.yml:2:20: a resource is a file, a URL or a key, under a verb without more; write resource.read for what is nothing else"},
		{"server: s\nresources: {notes: {verb: memory.read, optional: true}}", "m.yml:2:20: a resource is a file, a URL or a key, under a verb without more; write resource.read for what is nothing else"},
		{"server: s\nresources: {notes: [memory.read, {verb: fs.read, glob: true}]}", "m.yml:2:20: a resource is a file, a URL or a key, under a verb without more; write resource.read for what is nothing else"},
		{"server: s\nresources: {notes: nets.get}", "m.yml:2:20: \"nets.get\" is no role; did you mean net.get?"},
		{"server: s\ndeclares: {}", "m.yml:1:1: the mapping has no tools; add tools:"},
		{"server: s\ndeclares: []", "m.yml:2:11: declares: takes a map of categories, not a list; write {} for a server that touches nothing"},
		{"server: s\nserver: t", "m.yml:2:1: the key \"server\" stands twice; it stands in line 1 already"},
		{"server: s\ntools: {}\n---\nserver: t", "m.yml:3:1: a second YAML document begins here; one file holds one mapping"},
		{"server: s\ntools: {}\n---\n\t", "m.yml:4:1: the YAML cannot be read: found character that cannot start any token"},
		{"server: &a s\ntools: {}", "m.yml:1:9: anchors and aliases have no place in a mapping; write the value out"},
		{"server: *a", "m.yml:1:1: the YAML cannot be read: unknown anchor 'a' referenced"},
		{"server: !!str s\ntools: {}", "m.yml:1:9: tags such as !!str have no place in a mapping"},
		{"server: s\n7: t", "m.yml:2:1: a key is a number; write it in quotes"},
		{"server: s\n<<: {tools: {}}", "m.yml:2:1: a key is a merge; write it in quotes"},
		{"server: s\ntools: {? [a] : b}", "m.yml:2:11: a key is a list; write it in quotes"},
		{"server: \"", "m.yml:1:1: the YAML cannot be read: found unexpected end of stream"},
		{"a:\n b: 1\n c", "m.yml:3:1: the YAML cannot be read: could not find expected ':'"},
		{strings.Repeat("[", 20) + strings.Repeat("]", 20), "m.yml:1:17: the YAML nests deeper than 16"},
		{strings.Repeat("#", 1<<20+1), "m.yml: the mapping is over 1048576 bytes"},
		{"server: s\ntools: {\"\": {}}", "m.yml:2:9: the name of a tool is empty, over 256 bytes or holds control characters"},
		{"server: s\ntools: {\"a\\nb\": {}}", "m.yml:2:9: the name of a tool is empty, over 256 bytes or holds control characters"},
		{"server: s\ntools: {t: {a: free}, t: {}}", "m.yml:2:23: the key \"t\" stands twice; it stands in line 2 already"},
	} {
		m, findings, err := mapping.Parse("m.yml", []byte(tt.text))
		var invalid *mapping.Invalid
		if m != nil || findings != nil || !errors.As(err, &invalid) {
			t.Fatalf("%.60q: got %v %v %v", tt.text, m, findings, err)
		}
		if err.Error() != tt.want {
			t.Errorf("%.60q:\n got %s\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestParseToolErrors(t *testing.T) {
	for _, tt := range []struct{ tool, want string }{
		{"", "3:5: a tool is a map of its arguments, not nothing; write {} for a tool without arguments"},
		{"free", "3:6: a tool is a map of its arguments, not text; write {} for a tool without arguments"},
		{"{label: [secret]}", "3:15: label: takes a list of private_in, untrusted_in, public_out; write .label for an argument of that name"},
		{"{label: fs.read}", "3:14: label: takes a list of private_in, untrusted_in, public_out; write .label for an argument of that name"},
		{"{additional: true}", "3:19: additional: takes free, and nothing else; write .additional for an argument of that name"},
		{"{additional: {verb: fs.read}}", "3:19: additional: takes free, and nothing else; write .additional for an argument of that name"},
		{"{requires: fs.read}", "3:17: requires: takes a list of 1 to 512 requirements; write .requires for an argument of that name"},
		{"{requires: []}", "3:17: requires: takes a list of 1 to 512 requirements; write .requires for an argument of that name"},
		{"{requires: [7]}", "3:18: a requirement is text or a map with one verb; write each after a dash"},
		{"{requires: [{net.get: a.com, net.put: a.com}]}", "3:18: a requirement is text or a map with one verb; write each after a dash"},
		{"{requires: [{net.gett: a.com}]}", "3:19: \"net.gett\" is no verb; did you mean net.get?"},
		{"{requires: [{net.get: []}]}", "3:28: net.get: names nothing"},
		{"{requires: [{net.get: [a.com, 7]}]}", "3:36: net.get: takes text, not a number"},
		{"{requires: [{net.get: {host: a.com}}]}", "3:28: net.get: takes text, not a map"},
		{"{requires: [{obs.append: x}]}", "3:31: obs.append touches nothing that has a name; write - obs.append"},
		{"{requires: [{net.get: \"*.a.com\"}]}", "3:28: no grant could cover net.get{host=[*.a.com]}: the host holds a character other than ASCII letters, digits, hyphens and dots"},
		{"{requires: [\"net.get{hosts=a.com}\"]}", "3:18: \"hosts\" does not belong to a requirement of net.get: it takes url, host"},
		{"{requires: [\"net.gett\"]}", "3:18: \"net.gett\" is no verb; did you mean net.get?"},
		{"{a: fs.reed}", "3:10: \"fs.reed\" is no role; did you mean fs.read?"},
		{"{a: fre}", "3:10: \"fre\" is no role; did you mean free?"},
		{"{a: }", "3:10: a role is a verb, free, secret, or a map, not nothing"},
		{"{a: true}", "3:10: a role is a verb, free, secret, or a map, not true or false"},
		{"{a: 2024-01-01}", "3:10: a role is a verb, free, secret, or a map, not a date"},
		{"{a: \"\"}", "3:10: verb: takes text, and there is none"},
		{"{a: net}", "3:10: net is no verb; write net.get, or method: with the argument that names the method"},
		{"{a: []}", "3:10: a list of roles has 1 to 8 of them"},
		{"{a: [secret, fs.read]}", "3:11: what holds secrets has no other role: that would be decided on the handle, not on what is filled in"},
		{"{a: [fs.read, secret]}", "3:20: what holds secrets has no other role: that would be decided on the handle, not on what is filled in"},
		{"{a: [fs.read, [fs.write]]}", "3:20: a role is a verb, free, secret, or a map, not a list"},
		{"{a: [fs.read, free]}", "3:20: what is free has no other role"},
		{"{a: {}}", "3:10: the role does not say what the argument is; begin with one of verb, in, argv0, argv, env, headers"},
		{"{a: {tree: true}}", "3:10: the role does not say what the argument is; begin with one of verb, in, argv0, argv, env, headers"},
		{"{a: {verbs: fs.read}}", "3:11: \"verbs\" is no key of a role; did you mean verb?"},
		{"{a: {verb: fs.read, in: proc.exec}}", "3:26: a role is verb: or in:, not both; write a list for several roles"},
		{"{a: {verb: [fs.read]}}", "3:17: verb: takes text, not a list"},
		{"{a: {verb: fs.read, tree: yes}}", "3:32: tree: takes true; leave it out where it is not meant"},
		{"{a: {verb: fs.read, tree: false}}", "3:32: tree: takes true; leave it out where it is not meant"},
		{"{a: {verb: fs.read, glob: 1}}", "3:32: glob: takes true; leave it out where it is not meant"},
		{"{a: {verb: fs.read, tree: true, glob: true}}", "3:44: an argument is a tree or a glob, not both"},
		{"{a: {verb: fs.read, as: url}}", "3:30: as: says nothing about fs.read"},
		{"{a: {verb: net.get, tree: true}}", "3:32: tree: says nothing about net.get"},
		{"{a: {verb: net.get, as: port}}", "3:30: as: takes url or host"},
		{"{a: {verb: net.get, method: m}}", "3:34: method: belongs to verb: net; write verb: net, or leave out method: where it is always net.get"},
		{"{a: {verb: net, method: o.m}}", "3:30: method: names an argument beside this one, without steps"},
		{"{a: {verb: net, method: \"[*]\"}}", "3:30: method: names an argument beside this one, without steps"},
		{"{a: {headers: [X_Trace]}}", "3:21: a header has a name of letters, digits and dashes"},
		{"{a: {verb: net, method: [m]}}", "3:30: method: takes text, not a list"},
		{"{a: {verb: net, method: m, default: PATCH}}", "3:42: default: beside method: is the method meant when there is none: GET, HEAD, POST, PUT or DELETE"},
		{"{a: {verb: records.update, dim: classes}}", "3:38: \"classes\" is no dimension of records.update; did you mean class?"},
		{"{a: {verb: tool.invoke, dim: args}}", "3:35: \"args\" is no dimension of tool.invoke; it is one of tool"},
		{"{a: {in: fs.read}}", "3:15: in: belongs to proc.exec or proc.eval"},
		{"{a: {argv0: proc.eval}}", "3:18: argv0: belongs to proc.exec"},
		{"{a: {argv: fs.read}}", "3:17: argv: belongs to proc.exec"},
		{"{a: {env: [proc.exec]}}", "3:16: env: takes text, not a list"},
		{"{a: {in: proc.exec}}", "3:10: no argument of the tool is a program under proc.exec"},
		{"{a: proc.exec, b: {env: proc.eval}}", "3:24: no argument of the tool is a program under proc.eval"},
		{"{a: proc.exec, b: {in: proc.exec}, c: {in: proc.exec}}", "3:44: another argument of the tool is in: of proc.exec"},
		{"{\"a[*].c\": proc.exec, \"a[*].d\": {in: proc.exec}}", "3:38: in: cannot stand inside an array: nothing says which program is meant"},
		{"{\"a[*][*]\": {argv: proc.exec}}", "3:18: argv: cannot stand inside an array: nothing says which program is meant"},
		{"{a: {headers: Accept}}", "3:20: headers: takes a list of the names that may be set"},
		{"{a: {headers: [7]}}", "3:21: a header has a name of letters, digits and dashes"},
		{"{a: {headers: [\"A B\"]}}", "3:21: a header has a name of letters, digits and dashes"},
		{"{a: {headers: [HOST]}}", "3:21: the header HOST cannot be passed on: it chooses the host, carries a credential or frames the message"},
		{"{a: {headers: [Accept], optional: true, default: x}}", "3:55: what is optional has no default"},
		{"{a: {verb: fs.read, optional: maybe}}", "3:36: optional: takes true; leave it out where it is not meant"},
		{"{a: {verb: fs.read, optional: true, default: x}}", "3:51: what is optional has no default"},
		{"{a: {verb: fs.read, default: 7}}", "3:35: default: takes text or a list of it"},
		{"{a: {verb: fs.read, default: [7]}}", "3:35: default: takes text or a list of it"},
		{"{a: {verb: fs.read, default: [a]}}", "3:35: the default cannot be read: malformed_arguments: the argument default: is an array, where text belongs"},
		{"{a: {verb: fs.read, default: \"\"}}", "3:35: the default cannot be read: malformed_arguments: the argument default: is empty"},
		{"{a: {verb: resource.read, default: \"db:{b}\"}}", "3:41: the default cannot be read: malformed_arguments: the argument default: is a template whose variables are not filled in"},
		{"{a: {verb: resource.read, default: \"db:../b\"}}", "3:41: the default cannot be read: no grant could cover it: the URI holds . or .. as a segment"},
		{"{a: {verb: net.get, default: a.com}}", "3:35: the default cannot be read: no grant could cover it: the URL does not begin with http:// or https://"},
		{"{a: {verb: fs.read, default: \"a\\0\"}}", "3:35: default: escaped NUL in a string at byte 2"},
		{"{\"\": free}", "3:7: the argument \"\" has an empty step"},
		{"{a..b: free}", "3:7: the argument \"a..b\" has an empty step"},
		{"{\"a[0]\": free}", "3:7: the argument \"a[0]\" has \"[0]\" where a dot or [*] belongs"},
		{"{\"a[*]b\": free}", "3:7: the argument \"a[*]b\" has \"b\" where a dot or [*] belongs"},
		{"{\"a]\": free}", "3:7: the argument \"a]\" ends in a backslash or has a bracket that nothing opens"},
		{"{'a\\': free}", "3:7: the argument \"a\\\\\" ends in a backslash or has a bracket that nothing opens"},
		{"{\"[*]\": free}", "3:7: the argument \"[*]\" has an empty step"},
		{"{\"a\\tb\": free}", "3:7: the path of an argument is over 256 bytes or holds control characters"},
		{"{a" + strings.Repeat(".b", 16) + ": free}", "3:7: the argument \"a" + strings.Repeat(".b", 16) + "\" has more than 16 steps"},
		{"{\"a[*]\": free, \"a[]\": fs.read}", "3:21: the argument \"a[]\" has a role already; write [a, b] for several roles"},
		{"{a: free, .a: fs.read}", "3:16: the argument \".a\" has a role already; write [a, b] for several roles"},
		{"{a: free, a.b: fs.read}", "3:16: an argument around or inside \"a.b\" has a role of its own"},
		{"{a.b: fs.read, a: free}", "3:21: an argument around or inside \"a\" has a role of its own"},
		{"{a: free, \"a[*]\": fs.read}", "3:16: an argument around or inside \"a[*]\" has a role of its own"},
		{"{a: proc.exec, \"a[*]\": fs.read}", "3:21: an argument around or inside \"a[*]\" has a role of its own"},
		{"{a: fs.read, a.b: free}", "3:19: an argument around or inside \"a.b\" has a role of its own"},
		{"{\"a[*].b\": {argv: proc.exec}}", "3:17: argv: cannot stand inside an array: nothing says which program is meant"},
	} {
		_, _, err := mapping.Parse("m", []byte("server: s\ntools:\n  t: "+tt.tool+"\n"))
		if err == nil || err.Error() != "m:"+tt.want {
			t.Errorf("%s:\n got %v\nwant m:%s", tt.tool, err, tt.want)
		}
	}
}

func TestParseLimits(t *testing.T) {
	var tools, arguments strings.Builder
	for i := range 4097 {
		name := "t" + strings.Repeat("x", i%60) + string(rune('a'+i%26)) + strings.Repeat("y", i/60)
		tools.WriteString("  " + name + ": {}\n")
	}
	for i := range 513 {
		arguments.WriteString("    a" + strings.Repeat("x", i%30) + "z" + strings.Repeat("y", i/30) + ": free\n")
	}
	for _, tt := range []struct{ text, want string }{
		{"server: s\ntools:\n" + tools.String(), "m:3:3: the mapping has more than 4096 tools"},
		{"server: s\ntools:\n  t:\n" + arguments.String(), "m:4:5: the tool has more than 512 arguments"},
	} {
		if _, _, err := mapping.Parse("m", []byte(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("got %.200v, want %s", err, tt.want)
		}
	}
}

func TestParseFindings(t *testing.T) {
	m, findings, err := mapping.Parse("m.yml", []byte(`server: s
tools:
  t: { path: fs.read, additional: free, label: [private_in, public_out] }
  u: { .label: free, .additional: free, .requires: free, label: untrusted_in }
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range findings {
		got = append(got, f.String())
	}
	want := []string{"m.yml:3:35: warning: t passes on arguments that the mapping does not know [additional_arguments]; give the arguments roles"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"private_in", "public_out"}, m.Tool("t").Labels()); diff != "" {
		t.Errorf("labels of t (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"label", "additional", "requires"}, m.Tool("u").Arguments()); diff != "" {
		t.Errorf("arguments of u (-want +got):\n%s", diff)
	}
}

// TestHeaders proves which headers no mapping may pass on.
func TestHeaders(t *testing.T) {
	for _, name := range []string{
		"Host", "authorization", "Cookie", "Set-Cookie", "Proxy-Authorization", "proxy-connection", "Connection", "Keep-Alive",
		"Content-Length", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Expect", "Forwarded", "X-Forwarded-Host", "X-Real-IP",
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Original-URL", "X-Api-Key", "X-Auth-Token", "Sec-WebSocket-Key",
		"Metadata-Flavor", "X-aws-ec2-metadata-token", "Private-Token", "X-CSRF-Token", "apikey", "X-Session-Id",
	} {
		if _, _, err := mapping.Parse("m", []byte("server: s\ntools: {t: {h: {headers: ["+name+"]}}}")); err == nil {
			t.Errorf("the header %s may be passed on", name)
		}
	}
	for _, name := range []string{"Accept", "Accept-Language", "User-Agent", "Content-Type", "If-None-Match", "Range", "Referer", "X-Trace"} {
		if _, _, err := mapping.Parse("m", []byte("server: s\ntools: {t: {h: {headers: ["+name+"]}}}")); err != nil {
			t.Errorf("the header %s: %v", name, err)
		}
	}
}

// TestParseShows refuses what a reader of the file sees on another line, in another order
// or not at all.
func TestParseShows(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"server: s # a\u2028tools: {t: {}}\n", "m:1:14: the mapping holds U+2028, which shows otherwise than it reads"},
		{"server: s\ntools: {} # é\u0085prompts: {p: {}}\n", "m:2:14: the mapping holds U+0085, which shows otherwise than it reads"},
		{"server: s\ntools: {} # a\rprompts: {p: {}}\n", "m:2:14: the mapping holds U+000D, which shows otherwise than it reads"},
		{"server: s\ntools: {\"a\u202eb\": {}}\n", "m:2:11: the mapping holds U+202E, which shows otherwise than it reads"},
		{"\ufeffserver: s\ntools: {}\n", "m:1:1: the mapping holds U+FEFF, which shows otherwise than it reads"},
		{"\xff\xfes\x00:\x00", "m:1:1: the mapping is not valid UTF-8"},
		{"server: s\r\ntools: {t: {}}\t# fine\r\n", ""},
	} {
		_, _, err := mapping.Parse("m", []byte(tt.text))
		if got := fmt.Sprint(err); tt.want != "" && got != tt.want || tt.want == "" && err != nil {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}
