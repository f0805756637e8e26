package upstream_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"capgate/upstream"
)

func TestStartFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    upstream.Program
		want string
	}{
		{"no command", upstream.Program{Name: "x"}, `upstream "x" does not start: there is no command`},
		{"no such program", upstream.Program{Name: "x", Argv: []string{"no-such-program-here"}}, `executable file not found`},
		{"no such file", upstream.Program{Name: "x", Argv: []string{"/no/such/file"}}, `no such file or directory`},
		{"no such directory", upstream.Program{Name: "x", Argv: []string{"true"}, Dir: "/no/such/dir"}, `the directory to run it in: stat /no/such/dir: no such file`},
		{"confine", upstream.Program{
			Name: "x", Argv: []string{"/bin/true"},
			Confine: func(*exec.Cmd) error { return errors.New("there is no sandbox") },
		}, `does not start: confine: there is no sandbox`},
		{"confine inherits", upstream.Program{
			Name: "x", Argv: []string{"/bin/true"},
			Confine: func(cmd *exec.Cmd) error { cmd.Env = nil; return nil },
		}, `the environment would be inherited`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := upstream.Start(t.Context(), tt.p, upstream.Options{})
			if f := failureOf(t, err); !strings.Contains(f.Error(), tt.want) || !f.Unsent {
				t.Errorf("got %q, unsent %t, want %q in it", f, f.Unsent, tt.want)
			}
		})
	}
}

// TestEnvironment: a program sees what is written of it, and nothing of the gateway (R-ETH-08).
func TestEnvironment(t *testing.T) {
	t.Setenv("CAPGATE_TEST_SECRET", "of the gateway")
	dir := t.TempDir()
	p := program(t, "plain", "ONLY=this", "EMPTY=")
	p.Dir = dir
	leak, err := syscall.Dup(1) // as the gateway may have from who started it
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	conn := started(t, p, upstream.Options{})
	if got, want := resultOf(t, conn, tool("env", 0), nil), `{"env":["CAPGATE_FAKE_SERVER=plain","GORACE=atexit_sleep_ms=0","ONLY=this","EMPTY="]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if runtime.GOOS != "linux" {
		return // what follows is read from /proc
	}
	got := resultOf(t, conn, tool("place", 0), nil)
	if want := fmt.Sprintf(`{"dir":%q,"leader":true,"files":3,"flags":[false,false,false]}`, dir); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNoEnvironment (R-ETH-08): a program for which nothing is written gets nothing, not what the
// gateway has.
func TestNoEnvironment(t *testing.T) {
	p := program(t, "plain")
	p.Env = nil
	seen := errors.New("seen")
	p.Confine = func(cmd *exec.Cmd) error {
		if cmd.Env == nil {
			t.Error("the environment is inherited")
		}
		return seen
	}
	if _, err := upstream.Start(t.Context(), p, upstream.Options{}); !errors.Is(err, seen) {
		t.Errorf("%v", err)
	}
}

func TestConfine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := program(t, "plain")
	p.Confine = func(cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, "CONFINED=yes")
		cmd.ExtraFiles = []*os.File{w}
		return nil
	}
	conn := started(t, p, upstream.Options{})
	if got := resultOf(t, conn, tool("env", 0), nil); !strings.Contains(got, "CONFINED=yes") {
		t.Errorf("got %s", got)
	}
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the extra file is still open here: %v", err)
	}
	conn.Close()
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the extra file is still open somewhere: %d, %v", n, err)
	}
}

// gone waits until a process has ended: it is no more, or only waits to be reaped.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); runtime.Gosched() {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d still runs", pid)
}

func TestEnd(t *testing.T) {
	var told struct{ Pid int }
	t.Run("leaves a process behind", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		if err := json.Unmarshal([]byte(resultOf(t, conn, tool("grandchild", 0), nil)), &told); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		gone(t, told.Pid)
	})
	t.Run("dies and leaves a process behind", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		if err := json.Unmarshal([]byte(resultOf(t, conn, tool("grandchild", 0), nil)), &told); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Call(t.Context(), tool("die", 0), nil)
		failureOf(t, err)
		gone(t, told.Pid)
	})
	t.Run("of the gateway", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			unavailable(t, "only Linux ends a process with its parent")
		}
		p := program(t, "parent")
		parent := exec.Command(p.Argv[0])
		parent.Env = p.Env
		hold, err := parent.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close()
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		text, _ := bufio.NewReader(out).ReadString('\n')
		if err := json.Unmarshal([]byte(strings.TrimSuffix(text, " <nil>\n")), &told); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := syscall.Kill(told.Pid, 0); err != nil {
			t.Fatalf("the server does not run: %v", err)
		}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = parent.Wait()
		gone(t, told.Pid)
	})
}

func TestPatience(t *testing.T) {
	t.Parallel() // it takes as long as a process has time to end
	var told struct{ Pid int }
	conn := started(t, program(t, "stubborn"), upstream.Options{})
	if err := json.Unmarshal([]byte(resultOf(t, conn, tool("pid", 0), nil)), &told); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < 5*time.Second {
		t.Errorf("it had %v to end", took)
	}
	gone(t, told.Pid)
}

// TestNothingIsLeft starts and ends many servers, in several ways.
func TestNothingIsLeft(t *testing.T) {
	cycle := func(i int) {
		conn, err := upstream.Start(t.Context(), program(t, "plain"), upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		resultOf(t, conn, tool("echo", 0), nil)
		if i%2 == 1 {
			_, err := conn.Call(t.Context(), tool("die", 0), nil)
			failureOf(t, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	cycle(0)
	goroutines, files := runtime.NumGoroutine(), countFiles(t)
	for i := range 200 {
		cycle(i)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if n := countFiles(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("there is a child left: %d, %v", pid, err)
	}
}

func countFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not Linux
	}
	return len(entries)
}

// unavailable ends a test that cannot run here: it fails where every test must run.
func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CAPGATE_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}
