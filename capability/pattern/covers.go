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
func Covers(b []Row, a Row, u []Universe) Verdict { return new(Effort).question(b, a, u, maxWork) }

// Effort is the work that several questions may cost together. The zero Effort is
// none: whatever needs any is not answered.
type Effort struct{ left int }

// NewEffort is an effort of some steps, of which a single question takes no more
// than it would by itself.
func NewEffort(steps int) *Effort { return &Effort{left: steps} }

// What is paid for a row before anything is searched.
const (
	rowCost  = 4   // to look at it
	nearCost = 128 // to make it a part of a machine
)

// Covers is the function of that name, as long as there is effort left for it.
func (e *Effort) Covers(b []Row, a Row, u []Universe) Verdict {
	if e.left -= rowCost * (1 + len(b)*len(u)); e.left <= 0 {
		return Verdict{Capped: true}
	}
	return e.question(b, a, u, min(e.left, maxWork))
}

func (e *Effort) question(b []Row, a Row, u []Universe, limit int) Verdict {
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
	witness, found, capped, work := (&search{u: u, limit: limit}).seek([]Row{a}, near, func(m *machine) goal { return beyond{m} })
	e.left -= work + nearCost*len(near)
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
