package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestUnasked: of Rye's verbs the gateway asks for some, and of ids for those that a
// resource could have (R-RYE-08).
func TestUnasked(t *testing.T) {
	for grant, want := range map[string]string{
		"rye.execute.tool.a.*":            "",
		"rye.execute.directive.a.*":       "",
		"rye.load.directive.a":            "",
		"rye.load.knowledge.a.*":          "",
		"rye.load.knowledge.a.b.c":        "",
		"rye.load.knowledge.*.b.*":        "",
		"rye.load.knowledge.*":            "",
		"rye.load.knowledge.a":            "a names no resource",
		"rye.load.knowledge.a.b":          "a.b names no resource",
		"rye.load.knowledge{ids=[a.*,b]}": "b names no resource",
		"rye.load.knowledge":              "", // inert, which is said already
		"rye.load.tool.a":                 "shown to whoever may call it",
		"rye.execute.knowledge.a":         "rye.load.knowledge",
		"rye.search.tool":                 "lists show what may be used",
		"rye.search.knowledge.a.*":        "lists show what may be used",
		"rye.sign.directive.*":            "command line",
		"tool.invoke:a.*":                 "",
		"resource.read{uris=[docs://*]}":  "",
		"resource.read{uris=[\"*\"]}":     "",

		"resource.read{uris=[docs://*,\"https://a.com/*\"]}":  "https://a.com/* is of the web, which is read under net.get",
		"resource.read{uris=[\"file:///w/**\"]}":              "fs.read",
		"resource.read{uris=[\"x://https://a/*\"]}":           "x://https://a/* has a host that not all servers find in it: such URIs are written out one by one, or granted with all of x:",
		"resource.read{uris=[\"x://https://a/b\"]}":           "",
		"resource.read{uris=[\"x://https:*\",\"x://a?b=*\"]}": "",
		"resource.read{uris=[\"x://u@*\",\"x://a\\\\?b=*\"]}": "",
		"memory.read:*": "",
	} {
		for g := range compile(t, grant).All() {
			if got := g.Unasked(); got == "" != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", grant, got, want)
			}
		}
	}
}

// TestReadObject: what is read is the URI; where it is read is no part of that.
func TestReadObject(t *testing.T) {
	for text, want := range map[string]string{
		"resource.read{uri=docs://a,server=kb}": "resource.read docs://a {uris=[docs://a]}",
		"resource.read{server=kb}":              "resource.read {uris=[*]}",
	} {
		q := need(t, text)
		spec, _ := q.Smallest(capability.Root{})
		got := q.String() + " " + strings.TrimPrefix(spec.String(), "resource.read")
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if spec, ok := need(t, `resource.read{uri="docs://{a}"}`).Smallest(capability.Root{}); ok {
		t.Errorf("%s is said to be of all that a template may become", spec)
	}
	if q := capability.Beyond("resource.read", "no"); q.Object() != "" {
		t.Error(q)
	}
	if _, err := capability.ParseRequirement("resource.read{uri=a,item=b}", view); err == nil {
		t.Error("an item was taken from whoever asks")
	}
}

// TestSchemes: the case of a scheme means nothing, wherever it is written.
func TestSchemes(t *testing.T) {
	for _, uri := range []string{"DOCS://Guide", "docs://Guide", "Docs://Guide"} {
		for _, grant := range []string{`resource.read{uris=["Docs://G*"]}`, "resource.read{uris=[DOCS://Guide]}", "rye.load.knowledge.s.docs.*"} {
			if d := compile(t, grant).Decide(need(t, `resource.read{uri="`+uri+`",server=s}`)); !d.Allowed() {
				t.Errorf("%s: %s", grant, d)
			}
		}
		if d := compile(t, `resource.read{uris=["*A/B:c*","docs://g*"]}`).Decide(need(t, `resource.read{uri="`+uri+`"}`)); d.Allowed() {
			t.Error(d)
		}
	}
	if d := compile(t, `resource.read{uris=["*//A:80"]}`).Decide(need(t, `resource.read{uri="docs://A:80"}`)); !d.Allowed() {
		t.Error(d)
	}
}

// TestItems: no two URIs share an id, and what names one names no other.
func TestItems(t *testing.T) {
	uris := []string{
		"a://b/c", "a://b.c", "a.b://c", "a://b/c/", "a://b//c", "a:b/c", "a:///b/c", "a://b/c?", "a://b/c#", "a://B/c", "a://b%2fc", "a://./b/c", "a://b/c.", "a://b\\c",
		"a+b://c", "a://b:c", "a://b@c", "a://b~c", "a://b-c", "a://b_c", "a://*/c", "a://b/?", "ab://c", "a://bc", "a", "a://", "://b/c",
	}
	for _, id := range []string{"s.a.b.c", "s.a.b-c", "s.a.b_c", "s.a.B.c", "s.ab.c", "s.a.bc"} {
		set := compile(t, "rye.load.knowledge{ids=["+id+"]}")
		var covered []string
		for _, uri := range uris {
			q, err := capability.Keyed("resource.read", capability.Word{Dim: "uri", Value: uri}, capability.Word{Dim: "server", Value: "s"})
			if err != nil {
				t.Fatal(err)
			}
			if set.Decide(q).Allowed() {
				covered = append(covered, uri)
			}
		}
		if len(covered) != 1 {
			t.Errorf("%s names %q", id, covered)
		}
	}
}
