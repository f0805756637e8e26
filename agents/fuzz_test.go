package agents_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
)

// corpus adds the records of all cases.
func corpus(f *testing.F, add func(name, text string)) {
	for _, pattern := range []string{"testdata/records/*.txtar", "testdata/edits/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal("there are no cases", err)
		}
		for _, path := range files {
			_, names, texts := archive(&testing.T{}, path)
			for _, name := range names {
				if filepath.Ext(name) != "" {
					add(name, texts[name])
				}
			}
		}
	}
}

// FuzzParse: nothing crashes the reader, everything is either a record or an
// error, and each grant of a record can be written down and read back (R-EGG-29).
func FuzzParse(f *testing.F) {
	corpus(f, func(name, text string) { f.Add(filepath.Ext(name), text) })
	f.Fuzz(func(t *testing.T, ext, text string) {
		rec, _, err := agents.Parse("scout"+ext, []byte(text))
		if err != nil {
			placed(t, rec, err)
			return
		}
		if rec.ID == "" || capability.AgentID(rec.ID) != rec.ID {
			t.Fatalf("%q is no id", rec.ID)
		}
		if rec.Parent != "" && capability.AgentID(rec.Parent) != rec.Parent {
			t.Fatalf("%q is no parent", rec.Parent)
		}
		capability.Compile(rec.Grants, capability.Options{Dialect: rec.Dialect})
		for _, s := range slices.Concat(rec.Grants, rec.Delegable) {
			readBack(t, s)
		}
	})
}

// placed checks that an error comes alone and says where.
func placed(t *testing.T, rec *agents.Record, err error) {
	t.Helper()
	if rec != nil {
		t.Fatal("a record and an error", err)
	}
	invalid := (*agents.Invalid)(nil)
	if errors.As(err, &invalid) && (invalid.Pos.Line < 1 || invalid.Pos.Col < 1 || invalid.Pos.File == "") {
		t.Fatalf("an error without a place: %v", err)
	}
	if invalid == nil && !errors.Is(err, agents.ErrNoAgent) {
		t.Fatalf("got a %T: %v", err, err)
	}
}

// readBack writes a grant down and reads it.
func readBack(t *testing.T, s capability.Spec) {
	t.Helper()
	back, err := capability.ParseSpec(s.String())
	if err != nil {
		t.Fatalf("%s cannot be read back: %v", s, err)
	}
	if !back.Equal(s) {
		t.Fatalf("%s is read back as %s", s, back)
	}
}

// FuzzEdit: to grant and to revoke the same leaves the set as it was, and no
// edit touches what is not its business.
func FuzzEdit(f *testing.F) {
	corpus(f, func(name, text string) {
		f.Add(filepath.Ext(name), text, "net.get{hosts=[new.example]}")
		f.Add(filepath.Ext(name), strings.ReplaceAll(text, "\n", "\r\n"), `fs.read{in=/new,paths=["a b",*.go]}`)
	})
	f.Add(".md", "---\nclass: agent\ncapabilities: [\n---]\n---\n", "fs.read{in=/new}")
	f.Fuzz(func(t *testing.T, ext, text, grant string) {
		spec, err := capability.ParseSpec(grant)
		if err != nil || len(text) > 64<<10 {
			return
		}
		name := "scout" + ext
		before, _, err := agents.Parse(name, []byte(text))
		if err != nil {
			return
		}
		granted, err := agents.Edit(name, []byte(text), agents.Change{Grant: []capability.Spec{spec}})
		if err != nil {
			refused(t, err)
			return
		}
		compare(t, before, granted, name)
		if missing := lost(text, string(granted.Data)); missing != "" {
			t.Fatalf("the line %q is gone from\n%s\nwhich is now\n%s", missing, text, granted.Data)
		}
		if !granted.Changed {
			if !bytes.Equal(granted.Data, []byte(text)) {
				t.Fatal("bytes changed where nothing did")
			}
			return
		}
		last := granted.Grants[len(granted.Grants)-1]
		revoked, err := agents.Edit(name, granted.Data, agents.Change{Revoke: []capability.Spec{last}})
		if err != nil {
			refused(t, err)
			return
		}
		compare(t, before, revoked, name)
		if got, want := texts(revoked.Grants), texts(without(granted.Grants, last)); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// refused accepts the errors that say why an edit was not made.
func refused(t *testing.T, err error) {
	t.Helper()
	refusal, invalid := (*agents.Refusal)(nil), (*agents.Invalid)(nil)
	if !errors.As(err, &refusal) && !errors.As(err, &invalid) {
		t.Fatalf("got a %T: %v", err, err)
	}
}

// compare reads an edited record back.
func compare(t *testing.T, before *agents.Record, out *agents.Edited, name string) {
	t.Helper()
	after, _, err := agents.Parse(name, out.Data)
	if err != nil {
		t.Fatalf("the result is broken: %v\n%s", err, out.Data)
	}
	if after.ID != before.ID || after.Parent != before.Parent || after.Body != before.Body ||
		!slices.Equal(after.Toolset, before.Toolset) || !slices.Equal(after.Approve, before.Approve) {
		t.Fatalf("the edit touched more than the grants:\n%s", out.Data)
	}
	if !slices.Equal(texts(after.Grants), texts(out.Grants)) {
		t.Fatalf("got %q, want %q", texts(after.Grants), texts(out.Grants))
	}
}

// lost returns the first line that is not the affair of an edit and that the
// result doesn't have in its place, byte for byte.
func lost(before, after string) string {
	edited := map[string]bool{"capabilities": true, "delegable": true, "access": true, "sandbox": true}
	key := regexp.MustCompile(`^["']?(\w+)["']?[ \t]*:`)
	rest, current, open := slices.Collect(strings.Lines(after)), "", 0
	for line := range strings.Lines(before) {
		if m := key.FindStringSubmatch(line); m != nil && open <= 0 {
			current = m[1]
		} else if current == "" && strings.HasPrefix(line, " ") {
			return "" // the keys are indented, which is beyond this check
		} else if strings.TrimRight(line, " \t\r\n") == "---" { // and no text that begins so
			current, open = "", 0
		}
		if edited[current] { // until what it opens is closed, at whatever indent
			open += strings.Count(line, "{") + strings.Count(line, "[") - strings.Count(line, "}") - strings.Count(line, "]")
			continue
		}
		open = 0
		i := slices.IndexFunc(rest, func(l string) bool { return l == line || l == line+"\n" || l == line+"\r\n" })
		if i < 0 {
			return line
		}
		rest = rest[i+1:]
	}
	return ""
}

func texts(specs []capability.Spec) []string {
	var out []string
	for _, s := range specs {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func without(specs []capability.Spec, gone capability.Spec) []capability.Spec {
	return slices.DeleteFunc(slices.Clone(specs), gone.Equal)
}
