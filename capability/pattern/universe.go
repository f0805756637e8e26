package pattern

// A Universe says which strings one dimension of a question is about.
type Universe uint8

// The universes. No string of any of them holds U+0000.
const (
	Any     Universe = iota // any string
	AbsPath                 // a canonical absolute path: "/", or segments each after a slash
	RelPath                 // a canonical relative path: segments with slashes between
)

// A canon is how far a string has been read as one of its universe. A segment is
// not empty and neither "." nor "..".
type canon uint8

const (
	never  canon = iota // it is not of the universe, whatever follows
	anyhow              // in a string of Any
	begin               // before an absolute path
	root                // behind its first slash
	slash               // before a segment
	dot                 // behind the first dot of a segment
	dots                // behind two dots
	inside              // in a segment

	canons = int(inside) + 1
)

// start is where a string of the universe is before its first character. A
// universe nobody defined is the widest one.
func (u Universe) start() canon {
	switch u {
	case AbsPath:
		return begin
	case RelPath:
		return slash
	default:
		return anyhow
	}
}

// done reports whether the string can end here.
func (c canon) done() bool { return c == anyhow || c == root || c == inside }

// read takes the next character, which is not U+0000.
func (c canon) read(r rune) canon {
	switch r {
	case '/':
		return [...]canon{anyhow: anyhow, begin: root, inside: slash}[c]
	case '.':
		return [...]canon{anyhow: anyhow, root: dot, slash: dot, dot: dots, dots: inside, inside: inside}[c]
	default:
		return [...]canon{anyhow: anyhow, root: inside, slash: inside, dot: inside, dots: inside, inside: inside}[c]
	}
}
