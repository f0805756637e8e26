package pattern

// A Verdict answers Covers. The zero Verdict is No.
type Verdict struct {
	Yes bool
	// Witness is, with No, a shortest thing that is in a and in no row of b: one
	// string for each dimension. There is none when Capped, or when the rows
	// do not fit each other.
	Witness []string
	Capped  bool // the work passed a limit: No, because nobody knows
}

// Covers reports whether everything in a is in at least one row of b, among the
// strings of the universes, one for each dimension. Rows of another length than
// a's are no answer: No.
func Covers(b []Row, a Row, u []Universe) Verdict {
	if !fits(u, []Row{a}) || !fits(u, b) {
		return Verdict{}
	}
	if a.empty() {
		return Verdict{Yes: true}
	}
	var near []Row
	for _, row := range b {
		if row.apart(a) {
			continue
		}
		if row.holds(a) {
			return Verdict{Yes: true}
		}
		near = append(near, row)
	}
	witness, found, capped := seek(u, []Row{a}, near, func(m *machine) goal { return beyond{m} })
	return Verdict{Yes: !found && !capped, Witness: witness, Capped: capped}
}

// fits reports whether the rows have a pattern for every dimension.
func fits(u []Universe, rows []Row) bool {
	for _, row := range rows {
		if len(row) != len(u) {
			return false
		}
	}
	return true
}

// beyond is the goal to find a string that no row matches.
type beyond struct{ m *machine }

func (b beyond) found(s wide) bool       { return !s.meets(b.m.final) }
func (b beyond) futile(s wide) bool      { return s.meets(b.m.whole) }
func (b beyond) worse(s, than wide) bool { return than.within(s) }
