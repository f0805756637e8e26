package capability

import "strings"

// climbs reports whether a segment with wildcards could stand for "..": shells
// expand .* and .? to it, and braces can hold its dot.
func climbs(text string) bool {
	for seg := range strings.SplitSeq(text, "/") {
		if !strings.ContainsAny(seg, wildcards) {
			continue
		}
		first := strings.TrimLeft(seg, `{\`)
		if strings.HasPrefix(first, ".") || strings.Contains(seg, ",.") {
			if p, err := parseGlob(seg); err != nil || p.Match("..") || p.Match(".") {
				return true
			}
		}
	}
	return false
}

// mark stands where a group of braces was, and in no text.
const mark = "\x00"

// mayClimb reports that of a glob. Libraries keep a star from standing for ".." where a segment begins with
// it, and nothing else; nor that in braces, or behind them.
func mayClimb(glob string) bool {
	texts := []string{glob}
	for i := 0; i < len(texts); i++ {
		if len(texts) > maxReadings {
			return true
		}
		text := texts[i]
		if start, end := innermost(text); start >= 0 {
			for one := range strings.SplitSeq(text[start+1:end], ",") {
				texts = appendNew(texts, text[:start]+mark+one+mark+text[end+1:])
			}
			continue
		}
		for seg := range strings.SplitSeq(text, "/") {
			if strings.ContainsAny(seg, wildcards) && !strings.HasPrefix(seg, "*") && isParent(strings.ReplaceAll(seg, mark, "")) {
				return true
			}
		}
	}
	return false
}

// isParent reports whether a segment may stand for "..".
func isParent(seg string) bool {
	p, err := parseGlob(seg)
	return err != nil || p.Match("..")
}
