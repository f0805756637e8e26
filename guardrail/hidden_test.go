package guardrail_test

import (
	"testing"
	"unicode"

	"capgate/guardrail"
)

// TestHidden: what shows nothing is hidden, and so is every blank but one.
func TestHidden(t *testing.T) {
	for _, r := range "\n\x1b\u0085\u00ad\u034f\u061c\u115f\u17b4\u180e\u200b\u200d\u2028\u2029\u202e\u2066\u3164\ufe0f\uffa0\ufeff\U000e0041\U000e0100" {
		if !guardrail.Unseen(r) || !guardrail.Hidden(r) {
			t.Errorf("%U: unseen %t, hidden %t", r, guardrail.Unseen(r), guardrail.Hidden(r))
		}
	}
	for r := range rune(unicode.MaxRune + 1) {
		if guardrail.Unseen(r) && !guardrail.Hidden(r) || unicode.IsSpace(r) && r != ' ' && !guardrail.Hidden(r) {
			t.Errorf("%U is shown as it is", r)
		}
	}
	for _, r := range " a~é文😀\u0301" {
		if guardrail.Hidden(r) {
			t.Errorf("%U is hidden", r)
		}
	}
	if !guardrail.Hidden('\u2800') || guardrail.Unseen('\u2800') {
		t.Error("U+2800 is a blank, and text")
	}
}
