package wire_test

import (
	"fmt"

	"capgate/wire"
)

func Example() {
	doc, err := wire.Parse([]byte(`{"name":"read_file","arguments":{"path":"notes/\u0074odo.md","head":20}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	name, _ := doc.Root().Get("name")
	arguments, _ := doc.Root().Get("arguments")
	fmt.Println(name.Equal("read_file"), arguments.Len())
	for key, value := range arguments.Members() {
		fmt.Printf("%s is the %s %s\n", key.Raw(), value.Kind(), value.Raw())
	}
	path, _ := arguments.Get("path")
	fmt.Println(path.Str())
	// Output:
	// true 2
	// "path" is the string "notes/\u0074odo.md"
	// "head" is the number 20
	// notes/todo.md true
}

func ExampleParse_refused() {
	_, err := wire.Parse([]byte(`{"path":"notes","p\u0061th":"/etc/passwd"}`))
	fmt.Println(err)
	// Output: duplicate key "path" at byte 16
}
