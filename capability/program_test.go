package capability_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
)

// requireProgram skips a test without the program, unless nothing may be skipped.
func requireProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		skip(t, "no-"+name+": the program is not on this machine")
	}
}

// requireGNU skips a test where the program is not GNU's, whose options it uses.
func requireGNU(t *testing.T, name string) {
	t.Helper()
	requireProgram(t, name)
	if out, _ := exec.Command(name, "--version").Output(); !strings.Contains(string(out), "GNU") {
		skip(t, "no-gnu-"+name+": the program of this machine has other options")
	}
}

func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CAPGATE_REQUIRE") == "all" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func TestNeedsPatterns(t *testing.T) {
	yes := "sh bash /bin/bash BASH bash.exe busybox toybox env xargs nohup nice timeout stdbuf setsid sudo doas su chroot " +
		"unshare nsenter time watch strace ltrace gdb lldb script expect awk gawk mawk nawk sed perl perl5.36.0 python " +
		"python3 python3.12 python3.13t pypy3 /usr/bin/python3.12 ruby ruby3.1 node node20 nodejs deno bun php php8.2 " +
		"lua lua5.4 luajit-2.1 tclsh tclsh8.6 wish Rscript osascript pwsh powershell cmd ed ex vi vim nvim emacs ssh scp " +
		"sftp rsync socat nc ncat parallel at batch crontab systemd-run docker podman kubectl helm less more man zsh dash " +
		"ksh fish csh tcsh ash sqlite3 linux32 run0 ld-linux-x86-64.so.2 g++-12 npx apt-get hg yq " +
		"x86_64-linux-gnu-gcc-12 aarch64-linux-gnu-g++ rustc-1.70 pandoc rename systemd-cat exiftool aria2c proxychains4 " +
		"torify setlock distcc ccache openvt sshfs nodemon cross-env nyc service scrot msgfilter virsh smbclient vipw " +
		"windres dlltool x86_64-w64-mingw32-windres jrunscript ghc nim dart pylint coverage ansible cowsay latexmk luatex pdb3 bundler javac javadoc as pax " +
		"ld.gold mold gfortran-12 protoc xsltproc identify gm sops websocat mksquashfs cloc ugrep sox conda wine64 chromium asciidoctor blender"
	for name := range strings.FieldsSeq(yes) {
		if !capability.NeedsPatterns(name) {
			t.Errorf("%s is bounded by its name", name)
		}
	}
	no := "gcc-ar gojq gcc-format-12 aria-x git rg jq find tar grep fd sort zip unzip curl wget make go npm cargo cat ls 7z md5sum sha256sum x86_64 e2fsck shx"
	for name := range strings.FieldsSeq(no) {
		if capability.NeedsPatterns(name) {
			t.Errorf("%s is not bounded by its name", name)
		}
	}
	if capability.NeedsPatterns("") || capability.NeedsPatterns("sh bash") {
		t.Error("what is no program is an interpreter")
	}
}

func TestRunsProject(t *testing.T) {
	for _, yes := range []string{"make", "go", "npm", "cargo", "/usr/bin/make", "pip3", "GO.exe", "pytest"} {
		if !capability.RunsProject(yes) {
			t.Errorf("%s does not run the project", yes)
		}
	}
	for _, no := range []string{"", "git", "sh", "ls", "gofmt", "makeinfo"} {
		if capability.RunsProject(no) {
			t.Errorf("%s runs the project", no)
		}
	}
}

// TestProgramsAreOneKind makes sure that what is said of a program is not
// contradicted: an interpreter needs no option rules, since it is never named
// without patterns.
func TestProgramsAreOneKind(t *testing.T) {
	interpreters, projects := capability.BoundNames()
	ruled := capability.RuledNames()
	all := slices.Concat(interpreters, projects, ruled)
	slices.Sort(all)
	for i := range all[1:] {
		if all[i] == all[i+1] {
			t.Errorf("%s stands twice", all[i])
		}
	}
	for _, name := range ruled {
		if name != strings.ToLower(name) || !capability.Ruled(name) {
			t.Errorf("%s can never be found", name)
		}
	}
}

// TestExcessIsReal runs what is denied, to prove that the danger is there: every
// call leaves the file mark. Words hold MARK for its path and RUN for a program
// that makes it.
func TestExcessIsReal(t *testing.T) {
	requireProgram(t, "git")
	repository := newRepository(t)
	cases := []string{
		"git rebase -ixtouch␣MARK HEAD~1",
		"git rebase -s a/x topic",
		"git cherry-pick --strategy=a/x topic",
		"git grep -nORUN hi",
		"git fetch --upload-pack=touch␣MARK;git-upload-pack .",
		"git pull -- --upload-pack=touch␣MARK;git-upload-pack .",
		"git clone -b -- --upload-pack=touch␣MARK;git-upload-pack . other",
		"git push --receive-pack=touch␣MARK;git-receive-pack . HEAD:refs/heads/z",
		"git clone -ccore.sshCommand=touch␣MARK␣# ssh://h/x other",
		"git clone -cprotocol.ext.allow=always ext::touch␣MARK other",
		"git -c core.fsmonitor=touch␣MARK status",
		"tar cfI out.tar touch␣MARK f",
		"tar --use=touch␣MARK -cf out.tar f",
		"tar -cf out.tar --checkpoint=1 --checkpoint-act=exec=touch␣MARK f",
		"tar -xf a.tar --to-com touch␣MARK",
		"find . -name f -exec touch MARK ;",
		"sort --compress=RUN -S1K -o out big",
		"split --filter=touch␣MARK f",
	}
	for _, line := range cases {
		words := argv(line)
		t.Run(words[0]+"/"+strings.Join(words[1:3], "_"), func(t *testing.T) {
			if words[0] != "git" {
				requireGNU(t, words[0])
			}
			dir := fresh(t, repository)
			call := make([]string, len(words))
			for i, w := range words {
				call[i] = strings.NewReplacer("MARK", mark(dir), "RUN", filepath.Join(dir, "run")).Replace(w)
			}
			out := runIn(t, dir, call)
			if _, err := os.Stat(mark(dir)); err != nil {
				t.Errorf("%q did nothing: %s", call, out)
			}
			if capability.Violation(call) == "" {
				t.Errorf("%q is allowed", call)
			}
		})
	}
}

// TestRepositoryIsReal shows how arguments that only write look harmless and make
// the repository run programs.
func TestRepositoryIsReal(t *testing.T) {
	requireProgram(t, "git")
	repository := newRepository(t)
	cases := map[string][]string{
		"output": {"git log -1 --format=[core]%n␣fsmonitor␣=␣touch␣MARK --output=.git/config", "git status"},
		"rename": {"git mv run .git/hooks/pre-commit", "git commit --allow-empty -qm x"},
		"link":   {"git mv run link/pre-commit", "git commit --allow-empty -qm x"},
	}
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			dir := fresh(t, repository)
			var out string
			for _, line := range lines {
				out += runIn(t, dir, argv(strings.ReplaceAll(line, "MARK", mark(dir))))
			}
			if _, err := os.Stat(mark(dir)); err != nil {
				t.Errorf("%q did nothing: %s", lines, out)
			}
			if capability.Violation(argv(lines[0])) == "" {
				t.Errorf("%q is allowed", lines[0])
			}
		})
	}
}

// TestGitRunsItsRepository shows what no option rule stops: a push to a folder,
// whose name looks like that of a remote, runs the hooks there.
func TestGitRunsItsRepository(t *testing.T) {
	requireProgram(t, "git")
	dir := newRepository(t)
	runIn(t, dir, argv("git init -q --bare inner"))
	runIn(t, dir, argv("mkdir -p inner/hooks"))
	runIn(t, dir, argv("cp run inner/hooks/post-receive"))
	push := argv("git push inner HEAD:refs/heads/x")
	out := runIn(t, dir, push)
	if _, err := os.Stat(mark(dir)); err != nil {
		t.Errorf("the hook did not run: %s", out)
	}
	if why := capability.Violation(push); why != "" {
		t.Errorf("the limit is gone, so is the need to speak of it: %s", why)
	}
}

// mark is the file that a program which should not run leaves.
func mark(dir string) string { return filepath.Join(dir, "..", "mark") }

// newRepository makes a repository with three commits, one of them on topic; in
// it a program "run" that makes the mark, the same where git looks for the
// strategy a/x, a link into .git, an archive and a file too large to be sorted
// at once.
func newRepository(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "repository")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"f":   "hi\n",
		"run": "#!/bin/sh\ntouch \"$MARK\"\ncat\n",
		"big": strings.Repeat("some line\n", 2000),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".git/hooks", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"git init -q .", "mkdir -p .git/hooks git-merge-a", "cp run git-merge-a/x", "git add f run link git-merge-a",
		"git commit -qm one", "git checkout -q -b topic", "cp f h", "git add h", "git commit -qm two",
		"git checkout -q -b other HEAD~1", "cp f g", "git add g", "git commit -qm three", "tar -cf a.tar f",
	} {
		runIn(t, dir, argv(line))
	}
	return dir
}

// fresh copies a repository for one case.
func fresh(t *testing.T, repository string) string {
	dir := filepath.Join(t.TempDir(), "repository")
	if err := os.CopyFS(dir, os.DirFS(repository)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runIn runs a program in a folder, with an environment that is the same on
// every machine. Whether it ends well says nothing about what it did.
func runIn(t *testing.T, dir string, call []string) string {
	cmd := exec.Command(call[0], call[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "MARK=" + mark(dir),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%q: %v", call, err)
	return string(out)
}
