package capability

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ofGlob adds what one text of a glob stands for, to any library that is known here.
func (r *pathReader) ofGlob(text string) {
	switch {
	case isUnread(text):
		r.opaque = opaqueUnread
		return
	case mayClimb(text):
		r.opaque = opaqueGlob
		return
	case len(alternatives(text)) > 1: // what it stands for are those, which are texts of their own
		if strings.Count(text, "{") >= strings.Count(r.raw, "{") { // who reads no braces reads none of them
			r.letters = append(r.letters, text)
		}
		return
	}
	if other := groupless(text); other != text {
		r.ofGlob(other)
	}
	if strings.ContainsAny(text, wildcards) {
		r.glob(text)
		if r.itself(text); !r.isFolder(text) {
			return
		}
	} else {
		if r.as.opens(text) >= 0 {
			r.expanded(text)
		}
		r.each(text, func(place string) { r.add(place, asksDirectory(text)) })
	}
	r.folders = append(r.folders, text)
}

// isFolder reports whether to some a glob stands for what is in the folders that it names: none of
// them says so of one that ends in a wildcard, unless a folder is called just that.
func (r *pathReader) isFolder(glob string) bool {
	is := !strings.HasSuffix(r.raw, "*") || strings.Contains(r.raw, "{")
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
	case !deep || front == "" || strings.HasSuffix(front, "*") && !strings.Contains(r.raw, "{"): // no file, to all of them
	case !strings.ContainsAny(front, wildcards):
		r.names = append(r.names, front)
	case r.as == asGlob || strings.Contains(front, "["):
		r.glob(front)
	}
}

// groupless writes a star for each segment that libraries take for other names than is written. Parentheses
// are a part of the name, or of none, and two plus signs are one or many where no slash is.
func groupless(glob string) string {
	if !strings.Contains(glob, "(") && !strings.Contains(glob, "++") {
		return glob
	}
	segs := strings.Split(glob, "/")
	for i, seg := range segs {
		if strings.Contains(seg, "(") || strings.Contains(seg, "++") && (i == len(segs)-1 || strings.ContainsAny(seg, wildcards)) {
			segs[i] = "*"
		}
	}
	return strings.Join(segs, "/")
}

// isUnread reports whether a glob has what libraries differ about, so that nobody knows what it stands for.
func isUnread(glob string) bool {
	return strings.ContainsFunc(glob, isOddSign) || operatorIn(glob) >= 0 || hasOddBraces(glob) ||
		slices.ContainsFunc(strings.Split(glob, "/"), isOddSegment)
}

// isOddSign reports whether a character quotes others, parts several globs, or is one that nobody sees, which
// some leave out.
func isOddSign(r rune) bool { return strings.ContainsRune("|\"'`\\", r) || !unicode.IsPrint(r) }

// hasOddBraces reports whether braces are left open, say how often, may be a range, or are mixed.
func hasOddBraces(glob string) bool {
	return strings.Count(glob, "{") != strings.Count(glob, "}") || strings.Contains(glob, "}+") ||
		strings.Contains(glob, "{+") || hasRange(glob) || hasMixedBraces(glob)
}

// hasMixedBraces reports whether something is behind groups that stand side by side, or in each other, or behind one
// with slashes and wildcards: doublestar seeks it beneath what it has found so far, too.
func hasMixedBraces(glob string) bool {
	depth, groups, slash, wild := 0, 0, false, false
	for i := range len(glob) {
		switch b := glob[i]; {
		case b == '{':
			depth, groups = depth+1, groups+1
		case b == '}' && depth == 0: // before it is open
			return true
		case b == '}':
			depth--
		case b == '/' && depth > 0:
			slash = true
		case b == '/' && (groups > 1 || slash && wild):
			return true
		case b == '/':
			groups, slash, wild = 0, false, false
		case strings.IndexByte(wildcards, b) >= 0:
			wild = true
		}
	}
	return false
}

// hasRange reports whether a group of braces may be a range.
func hasRange(glob string) bool {
	_, after, ok := strings.Cut(glob, "{")
	inside, _, _ := strings.Cut(after, "}")
	return ok && (strings.Contains(inside, "..") || hasRange(after))
}

// isOddSegment reports whether to some a segment climbs, leaves out what it says, or goes on beyond a slash.
func isOddSegment(seg string) bool {
	return strings.HasPrefix(seg, "..") && len(seg) > len("..") || strings.HasPrefix(seg, "!") || hasOddGroup(seg) || hasOddClass(seg)
}

// hasOddGroup reports whether a segment has parentheses that are not around words, as those of "report (2).txt" are.
func hasOddGroup(seg string) bool {
	if !strings.ContainsAny(seg, "()") {
		return false
	}
	if strings.ContainsAny(seg, wildcards+"{}") || strings.Contains(seg, ")+") {
		return true
	}
	for rest := seg; ; {
		before, body, ok := strings.Cut(rest, "(")
		if !ok {
			return strings.Contains(before, ")")
		}
		if body, rest, ok = strings.Cut(body, ")"); !ok || strings.Contains(before, ")") || !isWords(body) {
			return true
		}
	}
}

// isWords reports whether a text is words, with a space or a hyphen between them.
func isWords(text string) bool {
	isSign := func(r rune) bool { return r < utf8.RuneSelf && !isWord(r) }
	isOther := func(r rune) bool { return isSign(r) && r != ' ' && r != '-' }
	return strings.TrimFunc(text, isSign) == text && text != "" && !strings.ContainsFunc(text, isOther)
}

// hasOddClass reports whether a segment has a class that is not of letters, is left open, or says how often.
func hasOddClass(seg string) bool {
	for rest := seg; ; {
		before, body, ok := strings.Cut(rest, "[")
		if !ok {
			return strings.Contains(before, "]") || strings.Contains(seg, "]+")
		}
		if body, rest, ok = strings.Cut(body, "]"); !ok || strings.Contains(before, "]") || !isClass(strings.TrimLeft(body, "!^")) {
			return true
		}
	}
}

// isClass reports whether nobody reads a class as one that holds a slash: it has letters, digits and dots, and
// ranges between letters or digits.
func isClass(body string) bool {
	for i := range len(body) {
		is := func(at int) bool { return at < 0 || at == len(body) || isWord(rune(body[at])) }
		if b := body[i]; b == '-' && (!is(i-1) || !is(i+1)) || b != '-' && b != '.' && b < utf8.RuneSelf && !isWord(rune(b)) {
			return false
		}
	}
	return body != ""
}
