package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/proxy"
)

// TestHiddenIsSaidOnce: what nobody is shown before a person has looked at it, or as several servers claim it,
// is an event once, whatever it is.
func TestHiddenIsSaidOnce(t *testing.T) {
	const secretly = "A\u200bB" // hides a character
	const unseen = "the definition holds a character that is not seen, U+200B"
	server := func(of string) *scripted {
		return &scripted{lists: map[string]string{
			"tools/list":   `"tools":[` + tool("t", "a") + `]`,
			"prompts/list": `"prompts":[{"name":"one` + of + `","description":"` + secretly + `"},{"name":"both"},{"name":"fine` + of + `"},{"name":"` + map[string]string{"X": "zed", "Y": "ZED"}[of] + `"}]`,
			"resources/list": `"resources":[{"uri":"a:///` + of + `","name":"a","description":"` + secretly + `"},` +
				`{"uri":"b:///both","name":"b"},{"uri":"c:///` + of + `","name":"c"}]`,
			"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"d` + of + `:///{x}","name":"d","description":"` + secretly + `"},` +
				`{"uriTemplate":"e:///{x}","name":"e"},{"uriTemplate":"f` + of + `:///{x}","name":"f"}]`,
		}}
	}
	ups := []*proxy.Upstream{{Name: "x", Open: server("X").open}, {Name: "y", Open: server("Y").open}}
	w := start(t, map[string]string{"scout": everything, "other": reader}, ups...)
	for _, agent := range []string{"scout", "other", "scout"} {
		w.client(agent).modern("prompts/list", "{}", "{}")
		w.adopt()
	}
	var got []string
	for _, e := range w.events.of("notice") {
		got = append(got, fmt.Sprint(e.Upstream, " ", e.Tool, " ", e.Code, ": ", e.Text))
	}
	slices.Sort(got)
	want := []string{
		"x prompt:both name_collision: the prompt is hidden: several prompts claim the name both",
		"x prompt:oneX tool_quarantined: the prompt is hidden: " + unseen,
		"x resource:a:///X tool_quarantined: the resource is hidden: " + unseen,
		"x resource:b:///both name_collision: the resource is hidden: several resources have the URI",
		"x t name_collision: the tool is hidden: several tools claim the name t",
		"x template:dX:///{x} tool_quarantined: the template is hidden: " + unseen,
		"x template:e:///{x} name_collision: the template is hidden: several servers have the template",
	}
	for _, text := range want {
		want = append(want, strings.NewReplacer("x ", "y ", "X", "Y").Replace(text[:9])+strings.ReplaceAll(text[9:], "X", "Y"))
	}
	for _, one := range []string{"x prompt:zed", "y prompt:ZED"} { // clients take them for one
		want = append(want, one+" name_collision: the prompt is hidden: several prompts claim the name ZED")
	}
	slices.Sort(want)
	for _, name := range []string{"zed", "ZED"} {
		if got := w.client("scout").modern("prompts/get", `{"name":"`+name+`"}`, "{}").Raw; !strings.Contains(got, "name_collision") {
			t.Errorf("%s is given: %s", name, got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHiddenByLongNames: what is known of what was hidden does not grow with the names that a server gives it.
func TestHiddenByLongNames(t *testing.T) {
	s := &scripted{lists: map[string]string{"resources/list": `"resources":[]`}, quiet: true}
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	c.initialize("{}")
	before := heap()
	for n := range 40 {
		twice := fmt.Sprintf(`{"uri":"note:///%d/%s","name":"note"}`, n, strings.Repeat("x", 1<<20))
		s.relist("resources/list", `"resources":[`+twice+","+twice+`]`)
		s.newest().Events.Notify("notifications/resources/list_changed", nil)
		c.request("resources/list", "{}")
	}
	if len(w.events.of("notice")) < 20 {
		t.Fatalf("%d were said to be hidden", len(w.events.of("notice")))
	}
	if now := heap(); now > before+20<<20 {
		t.Errorf("%d MB are kept of resources that are there no more", (now-before)>>20)
	}
}

// TestHiddenWithSecret: what is hidden as a secret stands in its name is recorded without any of it, also where
// the name is cut.
func TestHiddenWithSecret(t *testing.T) {
	s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"note:///` + strings.Repeat("hunter2", 600) + `","name":"note"}]`}}
	up := &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, Scrub: func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "*")) }}
	w := start(t, map[string]string{"scout": everything}, up)
	w.client("scout").modern("resources/list", "{}", "{}")
	for _, e := range w.events.of("notice") {
		if e.Tool != "resource:note:///"+strings.Repeat("*", 600) {
			t.Errorf("it is said of %s", e.Tool)
		}
	}
	if len(w.events.of("notice")) != 1 {
		t.Errorf("%d events", len(w.events.of("notice")))
	}
}

// TestHiddenInTurn: what is hidden in turn is said once for each definition, however often the server changes
// its mind, and of one that lists ever another now and then. What could not be said is, once there is time for it.
func TestHiddenInTurn(t *testing.T) {
	const list = `"tools":[{"name":"t","description":"v%d","inputSchema":{"type":"object"}}]`
	s := &scripted{lists: map[string]string{"tools/list": fmt.Sprintf(list, 0)}, quiet: true}
	var late atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	w := startWith(t, proxy.Options{Clock: clock}, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	told := func() (n int) {
		for _, e := range w.events.of("notice") {
			if e.Tool == "up.t" {
				n++
			}
		}
		return n
	}
	lists := func(version int) int {
		s.relist("tools/list", fmt.Sprintf(list, version))
		s.newest().Events.Notify("notifications/tools/list_changed", nil)
		shown := len(toolNames(t, c.request("tools/list", "{}"))) > 0
		if want := version == 0; shown != want {
			t.Fatalf("version %d is shown: %v", version, shown)
		}
		return told()
	}
	c.initialize("{}")
	c.request("tools/list", "{}")
	for range 20 {
		lists(0)
		if got := lists(1); got != 1 {
			t.Fatalf("%d events of one definition", got)
		}
	}
	for range 20 {
		late.Add(int64(time.Minute))
		lists(1)
		if got := lists(2); got != 2 {
			t.Fatalf("%d events of two definitions", got)
		}
	}
	for version := 3; version < 40; version++ {
		lists(version)
	}
	if got := lists(40); got != 4 {
		t.Errorf("%d events in a moment", got)
	}
	late.Add(int64(30 * time.Second))
	before := told()
	w.adopt()
	c.request("tools/list", "{}")
	if got := lists(40); got != before+1 {
		t.Errorf("%d events of it in the end", got-before)
	}
}
