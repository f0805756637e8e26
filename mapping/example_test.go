package mapping_test

import (
	"fmt"

	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

func ExampleTool_Require() {
	m, _, err := mapping.Parse("files.yml", []byte(`
server: files
tools:
  move_file: { source: [fs.read, fs.delete], destination: fs.write }
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := wire.Parse([]byte(`{"source": "a.txt", "destination": "../b.txt"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	needs, err := m.Tool("move_file").Require(mapping.Call{
		Name: "files.move_file",
		Args: doc.Root(),
		View: capability.View{Cwd: "/srv/files"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, need := range needs {
		fmt.Printf("%s: %s\n", need.Argument, need.Requirement)
	}
	// Output:
	// source: fs.read a.txt
	// source: fs.delete a.txt
	// destination: fs.write ../b.txt
}
