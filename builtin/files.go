package builtin

import (
	"errors"
	"os"

	"capgate/capability"
)

const maxPath = 4096 // bytes of a path, as in package capability

// The verbs that the tools of the files server need.
const (
	reading  = capability.Verb("fs.read")
	writing  = capability.Verb("fs.write")
	deleting = capability.Verb("fs.delete")
)

// files is the server of kind fs.
type files struct {
	Options
	root *os.Root
}

func openFiles(o Options) (*files, error) {
	if o.Root.IsZero() {
		return nil, errors.New("it has no root directory to serve")
	}
	root, err := os.OpenRoot(o.Root.Real)
	if err != nil {
		return nil, err
	}
	f := &files{o, root}
	d, err := f.folder(o.Root.Real)
	if err != nil {
		root.Close() //nolint:errcheck // it was only read
		return nil, err
	}
	d.close()
	return f, nil
}

func pathOf(what string) parameter {
	return parameter{name: "path", required: true, most: maxPath, help: what + ", absolute or relative to the root. No .. and no ~."}
}

// tools are the tools of the files server.
func (f *files) tools() []tool {
	dir := pathOf("The directory")
	dir.required = false
	dir.help += " The root itself when it is left out."
	return []tool{
		{
			name: "read", title: "Read a file", run: f.read,
			help: "Reads a file. Text comes as text, by lines; anything else whole, as an image or as base64.",
			parameters: []parameter{
				pathOf("The file"),
				{name: "offset", kind: number, most: maxLines, help: "The first line to read, counted from 1. For text only."},
				{name: "limit", kind: number, most: maxLines, help: "How many lines to read at most. For text only."},
			},
			hints: hints{reads: true, idempotent: true},
		},
		{
			name: "write", title: "Write a file", run: f.write,
			help: "Writes text to a file: a new one (create), in place of what it holds (overwrite, made if it is not there), or at its end (append, made if it is not there).",
			parameters: []parameter{
				pathOf("The file"),
				{name: "content", required: true, most: int64(f.Limits.Write), help: "The text."},
				{name: "mode", choices: []string{create, overwrite, appending}, help: "What to do about a file that is there. The default is create, which refuses it."},
				{name: "parents", kind: flag, help: "Make the directories above the file that are not there. The default is false."},
			},
			hints: hints{destroys: true},
		},
		{
			name: "list", title: "List a directory", run: f.list,
			help:       "Lists the entries of a directory that may be read, with their types and sizes. Links are shown and not followed.",
			parameters: []parameter{dir},
			hints:      hints{reads: true, idempotent: true},
		},
		{
			name: "search", title: "Search for files", run: f.search,
			help: "Finds files beneath a directory, by name, by what they hold, or both. Links are not followed.",
			parameters: []parameter{
				dir,
				{name: "pattern", most: maxPattern, help: "A glob with * ? [ ] for the name, or with a / for the path beneath the directory, where ** is any number of segments."},
				{name: "text", most: maxSought, help: "A text that a line of the file must hold, exactly as written. The lines are shown."},
			},
			hints: hints{reads: true, idempotent: true},
		},
		{
			name: "delete", title: "Delete a file or directory", run: f.remove,
			help: "Deletes a file, a link (not what it leads to) or an empty directory; with recursive a directory with all that is beneath it.",
			parameters: []parameter{
				pathOf("What to delete"),
				{name: "recursive", kind: flag, help: "Delete a directory that is not empty. The default is false."},
			},
			hints: hints{destroys: true, idempotent: true},
		},
		{
			name: "info", title: "Describe a file or directory", run: f.info,
			help:       "Says what a path is: its type, size, permissions and when it was last changed.",
			parameters: []parameter{pathOf("The file or directory")},
			hints:      hints{reads: true, idempotent: true},
		},
	}
}
