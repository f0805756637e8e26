package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/config"
)

// TestGitTakesNoRepositoryByPath: whoever may write files has made a repository of them, whose
// configuration names a program. A push to it would run that, and git is not to (R-SEC-09).
func TestGitTakesNoRepositoryByPath(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CAPGATE_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip("no-git: git is not on this machine")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	env, err := (&servers{}).environment(&config.Upstream{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	git := func(env []string, line string) string {
		cmd := exec.Command("git", strings.Fields(line)...)
		cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "GIT_CONFIG_NOSYSTEM=1")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	git(env, "init -q -b main .")
	git(env, "-c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x")
	for name, text := range map[string]string{
		"HEAD":                    "ref: refs/heads/main\n",
		"refs/heads/.keep":        "",
		"objects/info/alternates": "../../.git/objects\n",
		"config":                  "[core]\n\tbare = true\n\talternateRefsCommand = \"touch " + dir + "/ran;true\"\n",
	} {
		file := filepath.Join(dir, "files", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ran := func() bool {
		_, err := os.Stat(filepath.Join(dir, "ran"))
		return err == nil
	}
	for _, line := range []string{"push files main", "push ./files main:x", "fetch files", "clone files other", "-C files log"} {
		if out := git(env, line); ran() || !strings.Contains(out, "not allowed") && !strings.Contains(out, "bare") {
			t.Errorf("git %s: %s", line, out)
		}
	}
	lifted := append(slices.DeleteFunc(slices.Clone(env), func(s string) bool { return strings.HasPrefix(s, "GIT_CONFIG_COUNT=") }), "GIT_CONFIG_COUNT=0")
	if out := git(lifted, "push files main"); !ran() {
		t.Errorf("the push runs nothing by itself, so that this test shows nothing: %s", out)
	}
}
