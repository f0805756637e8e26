package capability

import (
	"errors"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// ofGlob adds what one text of a glob stands for, to any library that is known here.
func (r *pathReader) ofGlob(text string) {
	own := r.own(text)
	echoes := func(base string) bool { return isEcho(base + "/" + strings.TrimPrefix(own, "~")) }
	switch {
	case isUnread(own) || isUnread(norm.NFKD.String(own)) || slices.ContainsFunc(r.bases(text), echoes):
		r.opaque = opaqueUnread
		return
	case mayClimb(own):
		r.opaque = opaqueGlob
		return
	case r.hangsOdd(text):
		r.opaque = opaqueRoot
		return
	}
	if r.words(own); composed(text) != text {
		r.part(composed(text))
	}
	if len(alternatives(text)) > 1 { // what it stands for are those, which are texts of their own
		if strings.Count(text, "{") >= strings.Count(r.raw, "{") { // who reads no braces reads none of them
			r.braced(text)
		}
		return
	}
	if strings.ContainsAny(text, wildcards) {
		r.glob(text)
		if r.itself(text); !r.isFolder(text) {
			return
		}
	} else {
		r.each(text, func(place string) { r.add(place, asksDirectory(text)) })
	}
	r.folders = append(r.folders, text)
}

// own returns what of a text is not the folder that it hangs from.
func (r *pathReader) own(text string) string {
	rest := text
	for _, dir := range r.view.dirs() {
		if own, ok := strings.CutPrefix(text+"/", dir+"/"); ok && dir != "" && len(own) < len(rest) {
			rest = strings.TrimSuffix(own, "/")
		}
	}
	return rest
}

// words adds the texts that stand between spaces: to some, each is a glob of its own.
func (r *pathReader) words(text string) {
	for word := range strings.FieldsSeq(text) {
		if word == text {
			return
		}
		if r.part(word); strings.Contains(word, "{") && !slices.Contains(r.letters, word) {
			r.braced(word)
		}
	}
}

// braced adds what a text with braces is to those who read none: a name with them, and to who parts texts at commas,
// what stands between two. What ends names, as tsx and js do, is in too many globs to be a name as well; that there is
// something of that name would be told by a denial.
func (r *pathReader) braced(text string) {
	r.letters = append(r.letters, text)
	pieces := strings.Split(r.own(text), ",")
	for _, piece := range pieces[1:max(1, len(pieces)-1)] {
		if !strings.ContainsAny(piece, "{}") && strings.ContainsFunc(piece, isNoEnding) {
			r.part(piece)
		}
	}
}

// isNoEnding reports whether a character is in no name of a kind of files.
func isNoEnding(r rune) bool { return r == '_' || !isWord(r) }

// part reads a part of a text as a text of its own, once.
func (r *pathReader) part(text string) {
	if r.opaque != "" || slices.Contains(r.parts, text) {
		return
	}
	if len(r.parts) == maxReadings {
		r.opaque = opaqueMany
		return
	}
	r.parts = append(r.parts, text)
	texts, opaque := spellings(text, true)
	r.opaque = opaque
	for _, one := range texts {
		r.ofGlob(one)
	}
}

// bases returns the folders that a text hangs from, as they are called and as they really are.
func (r *pathReader) bases(text string) []string {
	bases := r.view.dirs()
	if strings.HasPrefix(text, "~") {
		bases = append(bases, r.view.Home)
	} else if strings.HasPrefix(text, "/") {
		bases = []string{strings.TrimSuffix(text, r.own(text))}
	}
	return r.view.real(bases)
}

// real adds what folders really are.
func (v View) real(dirs []string) []string {
	for _, dir := range dirs {
		if v.FS != nil && dir != "" {
			if real, err := resolve(v.FS, dir); err == nil { // or else it is said where the text is looked up
				dirs = append(dirs, real)
			}
		}
	}
	return dirs
}

// hangsOdd reports whether a folder that a glob hangs from is called like one, which it is to who joins the two.
func (r *pathReader) hangsOdd(text string) bool {
	signs := wildcards + "{}"
	if r.as == asGlob {
		signs += `()|\`
	}
	return slices.ContainsFunc(r.bases(text), func(base string) bool { return strings.ContainsAny(base, signs) })
}

// isFolder reports whether to some a glob stands for what is in the folders that it names: none of
// them says so of one that ends in a wildcard, unless a folder is called just that.
func (r *pathReader) isFolder(glob string) bool {
	is := !strings.HasSuffix(glob, "*") || !strings.HasSuffix(r.raw, "*") || strings.Contains(r.raw, "{")
	if !is && r.view.FS != nil {
		r.each(glob, func(place string) {
			_, err := resolve(r.view.FS, place+"/..")
			is = is || !errors.Is(err, ErrNoDirectory)
		})
	}
	return is
}

// itself adds what stands in front of a final /**, which to some is a file of that name.
func (r *pathReader) itself(glob string) {
	front, deep := glob, false
	for ok := true; ok; deep = deep || ok {
		front, ok = strings.CutSuffix(front, "/**")
	}
	switch {
	case !deep || front == "":
	case !strings.ContainsAny(front, wildcards):
		r.names = append(r.names, front)
	case r.as == asGlob || strings.Contains(front, "["):
		r.glob(front)
	}
}

// isUnread reports whether a glob has what libraries differ about, so that nobody knows what it stands for.
func isUnread(glob string) bool {
	segs := strings.Split(glob, "/")
	return strings.ContainsFunc(glob, isOddSign) || slices.ContainsFunc(segs, isOddSegment) || slices.ContainsFunc(segs[:len(segs)-1], isMixed)
}

// isEcho reports whether a name is on both sides of a **, which is one to some where there are names and no wildcards.
func isEcho(glob string) bool {
	before, after, ok := strings.Cut(glob, "/**/")
	return ok && !strings.ContainsAny(before+after, wildcards) && slices.Contains(strings.Split(after, "/"), path.Base(before))
}

// isOddSign reports whether a character quotes others, is of a class or a group, parts several globs, says how one
// is meant, or is one that nobody sees, which some leave out.
func isOddSign(r rune) bool {
	return strings.ContainsRune("|\"'`\\()[]:;<>&$^#", r) || !unicode.IsPrint(r)
}

// isOddSegment reports whether to some a segment climbs, has a range, leaves out what it says, says how often, or
// goes on beyond a slash.
func isOddSegment(seg string) bool {
	return strings.Contains(seg, "..") && seg != ".." || strings.Contains(seg, "**") && seg != "**" || strings.HasPrefix(seg, "!") ||
		hasOddBraces(seg) || strings.Contains(seg, "++") || strings.Contains(seg, "{+") || strings.Contains(seg, "}+")
}

// hasOddBraces reports whether braces are open, hold a slash, are within each other, or leave out a comma.
func hasOddBraces(seg string) bool {
	for rest := seg; ; {
		body, after, shut := strings.Cut(rest, "}")
		outside, _, opened := strings.Cut(body, "{")
		if opened != shut || strings.Contains(outside, ",") {
			return true
		}
		if !shut {
			return false
		}
		rest = after
	}
}

// isMixed reports whether a segment has several groups of braces: what is behind them doublestar seeks beneath
// what it has found of the first, too.
func isMixed(seg string) bool { return strings.Count(seg, "{") > 1 }
