package guardrail

import (
	"unicode"
	"unicode/utf8"
)

// Unseen reports whether a character shows nothing by itself, or changes how its neighbours
// are shown: controls, marks of direction, joiners, fillers, what chooses between pictures.
// Emoji are put together with some of them.
func Unseen(r rune) bool {
	return r&0xfffe == 0xfffe ||
		unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Hidden reports whether a person cannot tell from a line whether a character stands in it.
// It is what is unseen, what is blank and no space, and what has no sign yet. Neither the log
// nor a terminal is given one as it is.
func Hidden(r rune) bool {
	return !unicode.IsPrint(r) || r >= utf8.RuneSelf && (r == blankPicture || Unseen(r))
}

// blankPicture is counted among signs, and has no dot in it.
const blankPicture = '\u2800'
