package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// skillServer is an MCP server that serves the skills of a folder by the extension, as
// they are when it starts, until its input ends. Each has only its SKILL.md.
func skillServer() {
	files := os.DirFS(os.Args[1])
	paths, err := fs.Glob(files, "*/SKILL.md")
	if err != nil {
		panic(err)
	}
	deeper, err := fs.Glob(files, "*/*/SKILL.md")
	if err != nil {
		panic(err)
	}
	texts := map[string]string{}
	var list []string
	for _, at := range append(paths, deeper...) {
		text, err := fs.ReadFile(files, at)
		if err != nil {
			panic(err)
		}
		uri := "skill://" + at
		texts[uri] = string(text)
		list = append(list, fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":%q},"resources":[{"uri":%q,"digest":"sha256:%x","size":%d}]}`,
			uri, path.Base(path.Dir(at)), uri, sha256.Sum256(text), len(text)))
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion, URI string }
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"not here"}`
		switch m.Method {
		case "initialize":
			answer = fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}},"serverInfo":{"name":"skills","version":"1"}}`, m.Params.ProtocolVersion)
		case "resources/list":
			answer = `"result":{"resources":[]}`
		case "resources/templates/list":
			answer = `"result":{"resourceTemplates":[]}`
		case "skills/list":
			answer = `"result":{"skills":[` + strings.Join(list, ",") + `]}`
		case "resources/read":
			text, err := json.Marshal(texts[m.Params.URI])
			if err != nil {
				panic(err)
			}
			answer = fmt.Sprintf(`"result":{"contents":[{"uri":%q,"text":%s}]}`, m.Params.URI, text)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
	}
}
