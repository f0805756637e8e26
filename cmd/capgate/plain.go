package main

import (
	"fmt"
	"strings"

	"capgate/guardrail"
)

// unseen begins what is shown in the place of a character that would not be seen.
const unseen = `\u{`

// plain makes text from a file, a server or an agent safe to print: what would not be seen is
// shown as \u{200b}. Where the text itself says such a thing, its backslash is \u{5c}, so that
// nothing else looks like it. Once is enough: what is shown is no text to make plain again.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd") // a terminal may take a byte of none for a control
	if !strings.ContainsFunc(text, guardrail.Hidden) && !strings.Contains(text, unseen) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if guardrail.Hidden(r) || strings.HasPrefix(text[i:], unseen) {
			fmt.Fprintf(&b, unseen+"%x}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cell is plain for one of several texts in a line, which stand two blanks apart: no other
// blank shows beside a blank, or at an end, and no text is nothing.
func cell(text string) string {
	const blank, nothing = unseen + "20}", `""`
	switch text = plain(text); text {
	case "":
		return nothing
	case nothing:
		return unseen + `22}"`
	}
	if !strings.Contains(text, "  ") && text[0] != ' ' && text[len(text)-1] != ' ' {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if text[i] == ' ' && (i == 0 || text[i-1] == ' ' || i == len(text)-1) {
			b.WriteString(blank)
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
