// Package pattern says what a glob matches, and whether it is inside a union of
// others.
//
// A pattern is literal text with wildcards:
//
//	[abc]    one of these, not the separator; also [a-z] and [a-z0-9_]
//	?        one character, not the separator
//	*        any run of characters but the separator
//	**       any run of characters
//	{a,b}    one of these patterns, which can hold braces again
//	\x       the character x
//
// The separator is "/" for paths, "." for dotted ids, U+001F for the words of an
// argv, or none. A ** that is a whole segment and has a separator behind it
// stands for any number of segments, none included: /srv/**/data matches
// /srv/data. Behind the last separator it is what is beneath: /srv/** does not
// match /srv; [Subtree] matches both.
//
// For URIs there is [Query]: no wildcard is the ? or # where a query or fragment begins, but a star at
// the end, and a ? that no wildcard stands before. Nor is one a colon behind that of the scheme, but a
// star at the end. Within a host, behind something that is written out, none is an @. Classes match
// what they name.
//
// The grammar is that of gobwas/glob, for
// allow-lists: it has no negation, and what is doubtful is an error.
//
//	p, err := pattern.Parse("/srv/**/*.go", pattern.Slash)
//	p.Match("/srv/a/b.go") // true
//
// The pattern of an argv is one of its words, joined by U+001F: "git\x1flog\x1f**"
// with [Unit]. Literal(word).String() writes a word without wildcards.
//
// Matching takes time linear in the length of the string, whatever the pattern,
// and does not allocate.
//
// [Covers] says whether everything in one [Row] is in a union of rows. A row is a
// product, such as cwd and argv, and what is asked about can be limited to
// canonical paths. The answer is exact, and a No comes with a shortest thing
// that is in the one and not in the other:
//
//	v := pattern.Covers(held, asked, []pattern.Universe{pattern.AbsPath})
//	v.Yes, v.Witness // false, ["/srv/src/x/.go"]
//
// [Meets] says whether several unions have something in common.
//
// # Limitations
//
// Deciding containment can take exponential time, so the work is limited: a
// question over a limit is answered with Capped, which is a No. Long unions of
// rows that all overlap with what is asked get there; twenty ordinary patterns
// do not.
//
// Characters are compared as they are: no case folding, no Unicode
// normalisation. Nothing here knows what a file is: canonical means that the
// text of a path is, not that it has no symbolic links.
//
// Braces are read before segments, as shells do: {a,b/}**/x is a**/x and b/**/x,
// and in the second alone ** can stand for no segment.
package pattern
