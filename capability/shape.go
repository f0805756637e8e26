package capability

// shape groups the verbs by what their requirements are made of.
type shape uint8

const (
	shapeWords   shape = iota // words: names, keys, ids
	shapePath                 // a path
	shapeHost                 // a host and port
	shapeProgram              // a working directory and, for proc.exec, an argv
)

func (v Verb) shape() shape {
	switch v.Resource() {
	case "fs":
		return shapePath
	case "net":
		return shapeHost
	case "proc":
		return shapeProgram
	}
	return shapeWords
}

// implications are the verbs that a grant of another dialect's verb carries with it:
// to execute a tool by its Rye id is to call the tool, to load knowledge is to read a
// resource.
var implications = [...]struct{ by, verb Verb }{
	{"rye.execute.tool", "tool.invoke"},
	{"rye.execute.directive", "prompt.get"},
	{"rye.load.directive", "prompt.get"},
	{"rye.load.knowledge", readResource},
}

const readResource = Verb("resource.read")

// verbs returns the verbs that a grant counts for: its own, and what that implies.
func (e Entry) verbs() []Verb {
	all := []Verb{e.Verb}
	for _, i := range implications {
		if i.by == e.Verb {
			all = append(all, i.verb)
		}
	}
	return all
}

// Implying returns the verbs of other dialects whose grants count for a verb.
func Implying(v Verb) []Verb {
	var all []Verb
	for _, i := range implications {
		if i.verb == v {
			all = append(all, i.by)
		}
	}
	return all
}
