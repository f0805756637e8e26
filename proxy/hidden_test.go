package proxy_test

import (
	"testing"
	"unicode"

	"capgate/guardrail"
	"capgate/proxy"
)

// TestOneTable: a definition may hold what the terminal is not given only where it breaks lines, is another
// blank, or has no sign yet.
func TestOneTable(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		_, found := proxy.HiddenIn("a" + string(r) + "a")
		if found != (guardrail.Unseen(r) && r != '\n' && r != '\t') {
			t.Errorf("%U: hidden in a definition: %t", r, found)
		}
	}
}
