package capability

// shape groups the verbs by what their requirements are made of.
type shape uint8

const (
	shapeWords   shape = iota // words: names, keys, ids
	shapePath                 // a path
	shapeHost                 // a host and port
	shapeProgram              // a working directory and, for proc.exec, an argv
)

func (e Entry) shape() shape {
	switch e.Verb.Resource() {
	case "fs":
		return shapePath
	case "net":
		return shapeHost
	case "proc":
		return shapeProgram
	}
	return shapeWords
}

// implied returns the verbs that a grant of another dialect's verb carries with
// it: to execute a tool by its Rye id is to call the tool.
func implied(v Verb) []Verb {
	switch v {
	case "rye.execute.tool":
		return []Verb{"tool.invoke"}
	case "rye.execute.directive", "rye.load.directive":
		return []Verb{"prompt.get"}
	}
	return nil
}
