package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestFenceLong: a fence whose place is too long for a pattern in both cases holds in
// both.
func TestFenceLong(t *testing.T) {
	long := "/w/" + strings.Repeat("abcdefghi/", 30) + "agents"
	fence := capability.NewFence(capability.Root{Dir: long, Real: long}, capability.Root{Dir: "/srv", Real: "/srv"})
	for text, want := range map[string]bool{
		"fs.read{path=" + strings.ToUpper(long) + "/x}": true,
		"fs.read{tree=/w/abcdefghi}":                    true,
		"fs.read{tree=/w/ABCDEFGHI}":                    true,
		"fs.read{tree=/w/abc}":                          false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	deep := "/w/" + strings.Repeat("abcdefghi/", 80) + "agents"
	fence = capability.NewFence(capability.Root{Dir: deep, Real: deep})
	if !fence.Touches(need(t, "fs.read{tree=/w/ABCDEFGHI}")) || fence.Touches(need(t, "fs.read{path=/w/abc}")) {
		t.Error("a fence longer than any pattern does not hold")
	}
	if all := capability.NewFence(capability.Root{Dir: "/", Real: "/"}); !all.Touches(need(t, "fs.read{path=docs}")) || !all.Touches(need(t, "fs.read{tree=docs}")) {
		t.Error("the whole file system is not fenced off")
	} else if !all.Overlaps(compile(t, "fs.read{paths=[docs/*]}")) {
		t.Error("the whole file system is not fenced off for a set")
	}
}

// TestFenceSealed: what is sealed may be read and not changed.
func TestFenceSealed(t *testing.T) {
	fence := capability.NewFence().Sealing(capability.Root{Dir: "/w/skills", Real: "/w/skills"})
	for text, want := range map[string]bool{
		"fs.read{path=skills/a}":      false,
		"fs.write{path=skills/a}":     true,
		"fs.delete{path=SKILLS/a}":    true,
		"proc.exec{argv=[rm,skills]}": true,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceOverlapsCase: a set that allows a fenced place by a name in other case
// overlaps the fence, as a requirement of that name touches it.
func TestFenceOverlapsCase(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"})
	for text, want := range map[string]bool{"fs.read{in=/w/AGENTS}": true, "fs.read{in=/w,paths=[aGents/x]}": true, "fs.read{in=/w/agent}": false} {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		if got := fence.Overlaps(set); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceLetters: names outside ASCII are compared letter by letter, whatever the
// bytes of their two cases are.
func TestFenceLetters(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/ärzte/ſicher", Real: "/w/ärzte/ſicher"})
	for text, want := range map[string]bool{
		"fs.read{path=/w/ÄRZTE/SICHER/x}": true,
		"fs.read{path=/w/ärzte/sicher}":   true,
		"fs.read{path=/w/ärzte/offen}":    false,
		"fs.read{path=/w/ärzteſicher}":    false,
		"fs.read{path=/w/ärzte}":          false,
		"fs.delete{path=/w/Ärzte}":        true,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
