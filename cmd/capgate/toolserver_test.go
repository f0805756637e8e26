package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// toolServer is an MCP server that lists the tools of a file, as it is then, until its input
// ends. A call says in which directory it runs, one of ask what its client is told.
func toolServer() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion, Name string }
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := fmt.Sprintf(`"error":{"code":-32601,"message":%q}`, "not here: "+m.Method)
		switch m.Method {
		case "initialize":
			answer = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"tools","version":"1"}}`, m.Params.ProtocolVersion)
		case "tools/list":
			tools, err := os.ReadFile(os.Args[1])
			if err != nil {
				panic(err)
			}
			var list []json.RawMessage
			if err := json.Unmarshal(tools, &list); err != nil {
				panic(err)
			}
			flat, _ := json.Marshal(list) //nolint:errchkjson // it was JSON just now
			answer = fmt.Sprintf(`"result":{"tools":%s}`, flat)
		case "tools/call":
			dir, err := os.Getwd()
			if err != nil {
				panic(err)
			}
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":"called"}],"_meta":{"dir":%q}}`, dir)
			if m.Params.Name == "ask" {
				fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`)
				lines.Scan()
				answer = fmt.Sprintf(`"result":{"content":[],"_meta":{"told":%s}}`, lines.Bytes())
			}
			if file := os.Getenv("CALLS"); file != "" {
				answer = repeated(file, lines.Bytes())
			}
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
}

// repeated notes a call in a file, and gives it back wherever a server can.
func repeated(file string, call []byte) (answer string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, "%s\n", call)
	if err := f.Close(); err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "called: %s\n", call)
	return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}],"_meta":{"call":%s}}`, call, call)
}
