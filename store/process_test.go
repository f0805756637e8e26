package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"capgate/store"
)

// A process of its own counts here, with Put or with Update.
const (
	workerDir  = "CAPGATE_TEST_STORE"
	workerTurn = "CAPGATE_TEST_STORE_TURNS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		if err := work(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work counts and says each number once it is kept.
func work(dir string) error {
	turns, err := strconv.Atoi(os.Getenv(workerTurn))
	if err != nil {
		return err
	}
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	for i := range turns {
		count := increment
		if i%2 == 1 {
			count = incrementByPut
		}
		now, err := count(s)
		if err != nil {
			return err
		}
		fmt.Println(now)
	}
	return nil
}

// incrementByPut is what a caller does without Update.
func incrementByPut(s *store.Store) (now int, err error) {
	for {
		data, version, err := s.Get("counts", "k")
		if err != nil {
			return 0, err
		}
		n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		_, err = s.Put("counts", "k", []byte(strconv.Itoa(n+1)), version)
		if !errors.Is(err, store.ErrChanged) {
			return n + 1, err
		}
	}
}

func worker(t *testing.T, dir string, turns int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), workerDir+"="+dir, workerTurn+"="+strconv.Itoa(turns))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestProcesses(t *testing.T) {
	const workers, each = 4, 20
	s, dir := open(t)
	var all []*exec.Cmd
	for range workers {
		cmd := worker(t, dir, each)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if data, _, err := s.Get("counts", "k"); strings.TrimSpace(string(data)) != strconv.Itoa(workers*each) || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// TestKilled: a writer that is killed leaves the lock free, no half entry, and
// everything that it was told is kept.
func TestKilled(t *testing.T) {
	s, dir := open(t)
	for round := range 10 {
		cmd := worker(t, dir, 1_000_000)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		last := 0
		for i := 0; i <= 2+round && said.Scan(); i++ {
			last, _ = strconv.Atoi(said.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for said.Scan() {
			if n, err := strconv.Atoi(said.Text()); err == nil {
				last = n
			}
		}
		_ = cmd.Wait() // killed, which is no news
		data, _, err := s.Get("counts", "k")
		kept, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || last == 0 || kept < last || kept > last+1 {
			t.Fatalf("round %d: %d is kept of %d, %v", round, kept, last, err)
		}
		if _, err := increment(s); err != nil {
			t.Fatal(err)
		}
	}
}
