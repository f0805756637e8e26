package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/builtin"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/upstream"
	"capgate/wire"
)

// holds makes the Decide of an agent that holds some grants.
func holds(t testing.TB, grants ...string) func(*capability.Requirement) error {
	t.Helper()
	var specs []capability.Spec
	for _, g := range grants {
		spec, err := capability.ParseSpec(g)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	set, findings := capability.Compile(specs, capability.Options{View: capability.View{FS: hostfs.FS{}}})
	for _, f := range findings {
		if f.Severity == capability.Error {
			t.Fatal(f)
		}
	}
	return func(r *capability.Requirement) error {
		if d := set.Decide(r); !d.Allowed() {
			return &capability.Denied{Decision: d}
		}
		return nil
	}
}

// tree makes a root with files, given as path and content. What ends in a slash
// is a directory, what holds " -> " a link.
func tree(t testing.TB, files ...string) capability.Root {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		full := filepath.Join(dir, name)
		link, target, isLink := strings.Cut(name, " -> ")
		switch {
		case isLink:
			full = filepath.Join(dir, link)
			err = errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.Symlink(strings.ReplaceAll(target, "$ROOT", dir), full))
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return capability.Root{Dir: dir, Real: dir}
}

func open(t testing.TB, kind string, o builtin.Options) upstream.Conn {
	t.Helper()
	if o.Name == "" {
		o.Name = "it"
	}
	conn, err := builtin.Open(kind, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// outcome is what became of one call.
type outcome struct {
	IsError    bool
	Content    []block
	Structured json.RawMessage `json:"structuredContent"`

	denied *capability.Denied
}

type block struct {
	Type, Text, Data, MimeType string
	Resource                   struct{ URI, MimeType, Blob string }
}

// text is what a model reads, "denied CODE" for a denial.
func (o outcome) text() string {
	if o.denied != nil {
		return "denied " + string(o.denied.Decision.Code)
	}
	var all []string
	for _, b := range o.Content {
		all = append(all, b.Text)
	}
	if o.IsError {
		return "error: " + strings.Join(all, "|")
	}
	return strings.Join(all, "|")
}

// call calls a tool. The args are a JSON object.
func call(t testing.TB, conn upstream.Conn, tool, args string) outcome {
	t.Helper()
	return callContext(t.Context(), t, conn, tool, args)
}

func callContext(ctx context.Context, t testing.TB, conn upstream.Conn, tool, args string) outcome {
	t.Helper()
	params := append(wire.AppendString([]byte(`{"name":`), tool), `,"arguments":`+args+`}`...)
	answer, err := conn.Call(ctx, upstream.Request{Method: "tools/call", Params: params, Name: tool}, nil)
	var o outcome
	if errors.As(err, &o.denied) {
		return o
	}
	if err != nil || answer.Error != nil {
		t.Fatalf("%s %s: %s %v", tool, args, answer.Error, err)
	}
	if _, err := wire.Parse(answer.Result); err != nil {
		t.Fatalf("%s %s: the result cannot be read strictly: %v", tool, args, err)
	}
	if err := json.Unmarshal(answer.Result, &o); err != nil {
		t.Fatal(err)
	}
	if answer.Failed != o.IsError {
		t.Errorf("%s %s: failed %v, and isError %v", tool, args, answer.Failed, o.IsError)
	}
	return o
}

// step is one call, and a part of what must come of it.
type step struct{ name, tool, args, want string }

func (s step) run(t *testing.T, conn upstream.Conn) {
	t.Helper()
	if got := call(t, conn, s.tool, s.args).text(); !strings.Contains(got, s.want) {
		t.Errorf("%s: %s %s: got %q, want %q", s.name, s.tool, s.args, got, s.want)
	}
}
