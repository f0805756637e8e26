package secrets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/secrets"
)

// keeper keeps secrets whose values stand in variables called like them.
func keeper(t testing.TB, values map[string]string) *secrets.Keeper {
	t.Helper()
	sources := map[string]secrets.Source{}
	for name := range values {
		sources[name] = secrets.Source{Env: name}
	}
	k, err := secrets.New(sources, secrets.Options{Getenv: func(name string) string { return values[name] }})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// resolved keeps secrets that have been handed out.
func resolved(t testing.TB, values map[string]string) *secrets.Keeper {
	t.Helper()
	k := keeper(t, values)
	for _, name := range k.Names() {
		if err := k.Check(name); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// TestExpand is R-SCA-05: exact syntax, and no nesting.
func TestExpand(t *testing.T) {
	k := keeper(t, map[string]string{
		"github":  "ghp_0123456789",
		"a.b_C-9": "otherwise",
		"nested":  "{{secret:github}}",
		"half":    "{{secret:gith",
		"short":   "1234567",
		"unset":   "",
		"zero":    "12345\x00678",
		"bytes":   "12345\xff678",
		"long":    strings.Repeat("v", 16<<10+1),
	})
	for text, want := range map[string]string{
		"":                                       "",
		"plain":                                  "plain",
		"{{user}} {{{{ }} {{secretary: x}}":      "{{user}} {{{{ }} {{secretary: x}}",
		"secret:github":                          "secret:github",
		"{secret:github}":                        "{secret:github}",
		"{{secret:github}}":                      "ghp_0123456789",
		"Bearer {{secret:github}}!":              "Bearer ghp_0123456789!",
		"{{secret:github}}{{secret:github}}":     "ghp_0123456789ghp_0123456789",
		"{{{secret:github}}}":                    "{ghp_0123456789}",
		"{{ {{secret:a.b_C-9}} }}":               "{{ otherwise }}",
		"{{secret:nested}}":                      "{{secret:github}}",
		"{{secret:half}}ub}}":                    "{{secret:github}}",
		"{{secret:a.b_C-9}}, {{secret:github}}.": "otherwise, ghp_0123456789.",
	} {
		if got, err := k.Expand(text); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"{{secret:}}", "{{secret:github}", "{{secret:github", "{{secret:git hub}}", "{{secret: github}}",
		"{{ secret:github}}", "{{Secret:github}}", "{{SECRET:github}}", "{{secrets:github}}", "{{secret :github}}",
		"{{secret:github }}", "{{secret:{{secret:github}}}}", "{{secret:é}}", "{{secret:a/b}}",
		"{{secret:" + strings.Repeat("x", 129) + "}}", "{{secret:github}} {{secret:github",
		"{{secret:nobody}}", "{{secret:GITHUB}}",
		"{{secret:short}}", "{{secret:unset}}", "{{secret:zero}}", "{{secret:bytes}}", "{{secret:long}}",
		strings.Repeat("{{secret:github}}", 100_000),
	} {
		got, err := k.Expand(text)
		if err == nil || got != "" {
			t.Errorf("%.60s: %.60q", text, got)
			continue
		}
		for _, value := range []string{"12345", "vvvvv", "ghp_"} {
			if strings.Contains(err.Error(), value) {
				t.Errorf("%.60s: the error shows a value: %v", text, err)
			}
		}
	}
	var none secrets.Keeper
	if one, err := none.With(map[string]secrets.Source{"a": {File: "/"}}); err != nil || one.Check("a") == nil {
		t.Errorf("after nothing: %v", err)
	}
	if _, err := none.Expand("{{secret:github}}"); err == nil {
		t.Error("who has no secrets filled one in")
	}
	if got := string(none.Scrub([]byte("text"))) + none.ScrubText(" and more"); got != "text and more" {
		t.Errorf("scrubbed to %q", got)
	}
}

func TestHandles(t *testing.T) {
	got, err := secrets.Handles("{{secret:b}} and {{secret:a}}{{secret:b}}, {{x}}")
	want := []secrets.Handle{{Name: "b", Start: 0, End: 12}, {Name: "a", Start: 17, End: 29}, {Name: "b", Start: 29, End: 41}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := secrets.Handles("none"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"{{secret:a}} {{secret:b", "{{ secret:a }}"} {
		if got, err := secrets.Handles(text); got != nil || err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, source := range map[string]secrets.Source{
		"neither":                {},
		"both":                   {Env: "A", File: "/a"},
		"relative":               {File: "a"},
		"assignment":             {Env: "A=B"},
		"":                       {Env: "A"},
		"a b":                    {Env: "A"},
		"a}}":                    {Env: "A"},
		strings.Repeat("x", 129): {Env: "A"},
	} {
		if _, err := secrets.New(map[string]secrets.Source{name: source}, secrets.Options{}); err == nil {
			t.Errorf("%q: %+v", name, source)
		}
	}
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// keeperOfFolder keeps what is in a folder, the folder itself, and a file that
// is missing.
func keeperOfFolder(t *testing.T, dir string) *secrets.Keeper {
	t.Helper()
	sources := map[string]secrets.Source{"missing": {File: filepath.Join(dir, "missing")}, "folder": {File: dir}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		sources[e.Name()] = secrets.Source{File: filepath.Join(dir, e.Name())}
	}
	k, err := secrets.New(sources, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("sound"), "0123456789\n", 0o600)
	writeFile(t, at("group"), "0123456789\r\n", 0o440)
	writeFile(t, at("largest"), strings.Repeat("x", 16<<10)+"\r\n", 0o600)
	writeFile(t, at("lines"), "0123\n456789\n\n", 0o400)
	writeFile(t, at("world"), "0123456789", 0o604)
	writeFile(t, at("world-write"), "0123456789", 0o602)
	writeFile(t, at("group-write"), "0123456789", 0o620)
	writeFile(t, at("empty"), "", 0o600)
	writeFile(t, at("newline"), "\n", 0o600)
	writeFile(t, at("short"), "1234567\n", 0o600)
	writeFile(t, at("large"), strings.Repeat("x", 16<<10+1), 0o600)
	writeFile(t, at("huge"), strings.Repeat("x", 1<<20), 0o600)
	if err := errors.Join(os.Symlink("sound", at("link")), os.Symlink("world", at("link-world")), syscall.Mkfifo(at("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := keeperOfFolder(t, dir)
	want := map[string]string{
		"sound": "0123456789", "group": "0123456789", "link": "0123456789",
		"world": "0123456789", "link-world": "0123456789", "largest": strings.Repeat("x", 16<<10), "lines": "0123\n456789",
	}
	for _, name := range k.Names() {
		got, err := k.Expand("{{secret:" + name + "}}")
		if got != want[name] || (err == nil) != (want[name] != "") {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	if err := k.Check("world-write"); err == nil || !strings.Contains(err.Error(), "others may write") || !strings.Contains(err.Error(), "0602") {
		t.Errorf("got %v", err)
	}
	if err := k.Check("missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	writeFile(t, at("sound"), "renewed-value", 0o600)
	if got, err := k.Expand("{{secret:sound}}"); got != "renewed-value" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got := string(k.Scrub([]byte("0123456789 renewed-value"))); strings.Contains(got, "renewed") || strings.Contains(got, "0123") {
		t.Errorf("scrubbed to %q", got)
	}
}

// TestWith: a keeper scrubs what those before and after it have handed out.
func TestWith(t *testing.T) {
	values := map[string]string{"old": "value-of-old", "late": "value-of-late", "new": "value-of-new"}
	before := keeper(t, values)
	expand := func(k *secrets.Keeper, name string) {
		t.Helper()
		if got, err := k.Expand("{{secret:" + name + "}}"); got != values[name] || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	expand(before, "old")
	after, err := before.With(map[string]secrets.Source{"new": {Env: "new"}})
	if err != nil {
		t.Fatal(err)
	}
	expand(before, "late")
	expand(after, "new")
	if got, err := after.Expand("{{secret:old}}"); err == nil {
		t.Errorf("a secret of before: %q", got)
	}
	for _, k := range []*secrets.Keeper{before, after} {
		if got := string(k.Scrub([]byte("value-of-old value-of-late value-of-new"))); got != "{{secret:old}} {{secret:late}} {{secret:new}}" {
			t.Errorf("scrubbed to %s", got)
		}
		if k.Known() != len(values) {
			t.Errorf("%d values are known", k.Known())
		}
	}
	if _, err := after.With(map[string]secrets.Source{"x": {}}); err == nil {
		t.Error("a source that is none")
	}
}

// TestReadFile: what another reader of files hands out is looked at as well.
func TestReadFile(t *testing.T) {
	failure := errors.New("sealed")
	k, err := secrets.New(map[string]secrets.Source{"a": {File: "/a"}, "b": {File: "/b"}}, secrets.Options{
		ReadFile: func(path string) ([]byte, error) {
			if path == "/a" {
				return bytes.Repeat([]byte("x"), 1<<20), nil
			}
			return nil, failure
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Check("a"); err == nil {
		t.Error("a value too large")
	}
	if err := k.Check("b"); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestTooManyValues(t *testing.T) {
	n := 0
	k, err := secrets.New(map[string]secrets.Source{"a": {Env: "A"}}, secrets.Options{
		Getenv: func(string) string { n++; return fmt.Sprintf("%08d%s", n, strings.Repeat("x", 16_000)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil && n < 1000 {
		err = k.Check("a")
	}
	if err == nil || n != 4<<20/16_008+1 || !strings.Contains(err.Error(), "too many") {
		t.Errorf("after %d values: %v", n, err)
	}
	if got := k.Scrub(fmt.Appendf(nil, "%08d%s", 1, strings.Repeat("x", 16_000))); string(got) != "{{secret:a}}" {
		t.Errorf("the first was forgotten: %.40s", got)
	}
}

// TestLearnShort: what cannot be told from other text is not learnt.
func TestLearnShort(t *testing.T) {
	k, err := secrets.New(nil, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", "1234567"} {
		if err := k.Learn("up", "a", value); err == nil || !strings.Contains(err.Error(), "shorter than 8 bytes") {
			t.Errorf("%q: %v", value, err)
		}
	}
	if k.Known() != 0 || k.ScrubText("1234567 1234567") != "1234567 1234567" {
		t.Errorf("%d values are known", k.Known())
	}
}

func TestNotPrinted(t *testing.T) {
	const value = "hunter2-hunter2"
	k := resolved(t, map[string]string{"a": value, "b": value})
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("kept", "keeper", k, "in", struct{ K *secrets.Keeper }{k})
	slog.New(slog.NewTextHandler(&out, nil)).Info("kept", "keeper", k, "in", struct{ K *secrets.Keeper }{k})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", *k)
		fmt.Fprintf(&out, verb+"\n", struct{ K *secrets.Keeper }{k})
		fmt.Fprintf(&out, verb+"\n", map[string]any{"k": k})
	}
	text, err := json.Marshal(map[string]any{"keeper": k})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	if shown := out.String(); strings.Contains(shown, "hunter2") || strings.Contains(shown, "68756e746572") || !strings.Contains(shown, "2 secrets") {
		t.Error(shown)
	}
}

func FuzzHandles(f *testing.F) {
	for _, seed := range []string{"", "{{secret:a}}", "{{{secret:a}}}", "{{secret:a", "{{ secret:a}}", "{{secret:a}}{{secret:b}}", "{{x}}{{secret:zz}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		handles, err := secrets.Handles(text)
		values := map[string]string{}
		done := 0
		for i, h := range handles {
			if values[h.Name] == "" {
				values[h.Name] = fmt.Sprintf("<value %d>", i)
			}
			if h.Start < done || text[h.Start:h.End] != "{{secret:"+h.Name+"}}" {
				t.Errorf("%q does not ask for %q at %d", text, h.Name, h.Start)
			}
			done = h.End
		}
		got, expandErr := keeper(t, values).Expand(text)
		if (err == nil) != (expandErr == nil) && len(got) < 1<<20 {
			t.Errorf("%q: %v, %v", text, err, expandErr)
		}
		if err != nil {
			return
		}
		var pairs []string
		for name, value := range values {
			pairs = append(pairs, "{{secret:"+name+"}}", value)
		}
		if want := strings.NewReplacer(pairs...).Replace(text); expandErr == nil && got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	})
}
