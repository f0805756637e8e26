package capability_test

import (
	"math/rand/v2"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
)

// TestBraces: what a shell makes of the braces in a path is among its readings, or none of
// them is covered by anything (R-SEC-05).
func TestBraces(t *testing.T) {
	requireProgram(t, "bash")
	r := rand.New(rand.NewPCG(5, 6))
	texts := []string{`{x},/etc/hostname}`, `{x\},/etc/x}`, `{x},{~/,/root/}.b}`, `{zz,{q}}`, `{a{b},c}`, `{a,b}}`, `{{a,b}`, `a},b{c`, `{a,b{c}`, `{a,{b,c}}d`, `{,a}`, `{a}`, `{a,b\}`, `{a\,b}`, `a,b`}
	pieces := append(strings.Split(`{{{}}},,,ab/\`, ""), "{a,b}", "{a,{b,c}}", "{,a}", "{a/b,{c}}", "{a,b}", "{a,b,c}")
	for len(texts) < 3000 {
		text := "x"
		for range 1 + r.IntN(6) {
			text += pieces[r.IntN(len(pieces))]
		}
		texts = append(texts, text)
	}
	out, err := exec.Command("bash", "-c", `set -f; while IFS= read -r text; do eval "printf '%s\n' $text"; echo =; done <<'END'`+"\n"+strings.Join(texts, "\n")+"\nEND").Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "=\n"), "=\n")
	if len(answers) != len(texts) {
		t.Fatalf("%d answers for %d texts", len(answers), len(texts))
	}
	read, several := 0, 0
	for i, text := range texts {
		p, err := capability.View{Cwd: "/w", Home: "/root"}.Path(text)
		if err != nil || p.Opaque() != "" {
			continue
		}
		words := strings.Split(strings.TrimSuffix(answers[i], "\n"), "\n")
		if read++; len(words) > 1 {
			several++
		}
		for _, word := range words {
			place := path.Clean(word)
			if !strings.HasPrefix(word, "/") {
				place = path.Join("/w", word)
			}
			if !slices.Contains(p.Readings(), place) {
				t.Errorf("%s: bash makes %q of it, and it reads as %q", text, word, p.Readings())
			}
		}
	}
	if t.Log(read, several); read < 500 || several < 100 {
		t.Errorf("%d texts were compared, %d of several words", read, several)
	}
}
