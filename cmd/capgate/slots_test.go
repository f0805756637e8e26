package main

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlots: one agent alone gets most places, and never those that others need for their
// first servers, and neither do two together. Where there are few, there is nothing to share.
func TestSlots(t *testing.T) {
	for _, tt := range []struct{ most, greedy, others, third int }{{64, 48, 12, 4}, {8, 6, 2, 1}, {3, 3, 0, 1}, {1, 1, 0, 1}} {
		s := newSlots(tt.most)
		take := func(agent string) (got int) {
			for got < 2*tt.most && s.take(agent) {
				got++
			}
			return got
		}
		if got := take("greedy"); got != tt.greedy {
			t.Errorf("of %d one agent takes %d, want %d", tt.most, got, tt.greedy)
		}
		if got := take("modest"); got != tt.others {
			t.Errorf("of %d another one gets %d, want %d", tt.most, got, tt.others)
		}
		s.give("greedy")
		if tt.others > 0 && s.take("greedy") {
			t.Errorf("of %d the first one takes a place that is not its own", tt.most)
		}
		if got := take("third"); got != tt.third {
			t.Errorf("of %d one place was given back, and a third one takes %d, want %d", tt.most, got, tt.third)
		}
	}
}

// TestAwaitedSlot: where no place is left, room is made, and what is ended in its own time
// leaves one. Nobody waits where there is none to be made.
func TestAwaitedSlot(t *testing.T) {
	s := newSlots(1)
	made := 0
	room := func() bool {
		if made++; made > 1 {
			return false
		}
		go func() { time.Sleep(50 * time.Millisecond); s.give("scout") }()
		return true
	}
	for i, want := range []bool{true, true, false} {
		if got := s.await(t.Context(), "scout", room); got != want {
			t.Errorf("the %d. process: %v", i+1, got)
		}
	}
	if s.await(t.Context(), "scout", nil) || made != 2 {
		t.Errorf("room was made %d times", made)
	}
}

// TestSwappedSlot: who gives a place back for another has that one, also where it holds more than its
// share by now, as others have come. It gets no more of them than it had.
func TestSwappedSlot(t *testing.T) {
	s := newSlots(8)
	for range 6 {
		s.take("scout")
	}
	for range 2 {
		s.take("boss")
	}
	room := func() bool { s.give("scout"); return true }
	if !s.await(t.Context(), "scout", room) || s.of["scout"] != 6 {
		t.Errorf("it has %d", s.of["scout"])
	}
	if s.give("boss"); s.take("scout") || !s.take("boss") {
		t.Error("the last places are not for others")
	}
}

// TestKilledSlot: a program that neither heeds the end of its input nor that it is asked to terminate
// is killed after five seconds. Whoever it makes room for waits as long.
func TestKilledSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		s.take("scout")
		room := func() bool {
			time.AfterFunc(5*time.Second+100*time.Millisecond, func() { s.give("scout") })
			return true
		}
		if !s.await(t.Context(), "scout", room) {
			t.Error("nobody has the place of a program that had to be killed")
		}
	})
}

// TestSlotsOfPrograms: each program that is started takes one, and nothing else does.
func TestSlotsOfPrograms(t *testing.T) {
	p := newPlace(t)
	p.write(map[string]string{
		"capgate.yml": "agents: ./agents\nsandbox: ./work\nupstreams:\n  own: { builtin: net }\n  program: { command: [sh], unmediated: true }\n" +
			"  elsewhere: { url: https://mcp.example.com/, unmediated: true }\n",
	})
	a := &app{}
	a.settings.Config = filepath.Join(p.dir, "capgate.yml")
	w, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range w.policy.Upstreams {
		if u.Process != (u.Name == "program") {
			t.Errorf("%s takes one: %v", u.Name, u.Process)
		}
	}
}

// TestSlotOfAnother: who waits for a place has the first that becomes free, whoever gives it back.
func TestSlotOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8)
		for _, agent := range []string{"scout", "scout", "scout", "scout", "scout", "boss", "boss", "other"} {
			if !s.take(agent) {
				t.Fatal(agent)
			}
		}
		room := func() bool { return true } // of what never ends
		time.AfterFunc(time.Second, func() { s.give("boss") })
		time.AfterFunc(time.Second, func() { s.give("other") })
		begun := time.Now()
		if got := s.await(t.Context(), "late", room); !got || time.Since(begun) != time.Second {
			t.Errorf("it waits for %v: %v", time.Since(begun), got)
		}
		synctest.Wait()
		if s.taken != 7 || s.of["scout"] != 5 || s.of["late"] != 1 {
			t.Errorf("taken are %d: %v", s.taken, s.of)
		}
		s.take("boss")
		time.AfterFunc(time.Second, func() { s.give("boss") })
		if s.await(t.Context(), "scout", room) {
			t.Error("who has its share has the last place of another")
		}
	})
}
