package pattern_test

import (
	"testing"

	"capgate/capability/pattern"
)

// TestEffort: questions that share an effort are answered as they are alone, until
// it is spent; then the answer is no.
func TestEffort(t *testing.T) {
	parse := func(text string) pattern.Row {
		p, err := pattern.Parse(text, pattern.None)
		if err != nil {
			t.Fatal(err)
		}
		return pattern.Row{p}
	}
	held, asked, over := []pattern.Row{parse("*a*"), parse("*b*")}, parse("*[ab]*c"), []pattern.Universe{pattern.Any}
	if v := new(pattern.Effort).Covers(held, asked, over); v.Yes || !v.Capped {
		t.Errorf("without any effort: %+v", v)
	}
	effort, answered := pattern.NewEffort(10000), 0
	for range 1000 {
		v := effort.Covers(held, asked, over)
		if v.Yes == v.Capped {
			t.Fatalf("%+v", v)
		}
		if v.Capped {
			break
		}
		answered++
	}
	if answered < 2 || answered == 1000 {
		t.Errorf("%d questions are answered", answered)
	}
}
