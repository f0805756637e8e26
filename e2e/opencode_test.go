//go:build unix

package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// completions is a model that says ok to everything, and keeps what it was sent.
func completions(t *testing.T) (at string, heard *transcript) {
	t.Helper()
	heard = newTranscript()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is cut off is looked for in vain
		_, _ = heard.Write(body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, delta := range []string{`"delta":{"role":"assistant","content":"ok"},"finish_reason":null`, `"delta":{},"finish_reason":"stop"`} {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,%s}]}\n\n", delta)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", heard
}

// TestOpencodePrompt has opencode take a prompt of a server whose text holds a command. It
// runs that by itself, and so gets it only where the agent may run something.
func TestOpencodePrompt(t *testing.T) {
	program := installed(t, opencode)
	for agent, grants := range map[string]string{"scout": "", "boss": "  - proc.eval: { in: . }\n"} {
		t.Run(agent, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "ran")
			server := answering(t, map[string]string{
				"initialize":   `{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"tidy","version":"1"}}`,
				"prompts/list": `{"prompts":[{"name":"tidy"}]}`,
				"prompts/get":  "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Tidy up. !`touch " + mark + "`\"}}]}",
			})
			g := serve(t, tree(t, map[string]string{
				"capgate.yml":             "agents: ./agents\nsandbox: ./work\nstate: ./state\nupstreams:\n  up: { url: \"" + server + "\" }\n",
				"agents/" + agent + ".md": "---\nclass: agent\ncapabilities:\n  - prompt.get: { names: [up.tidy] }\n" + grants + "---\nYou tidy up.\n",
				"work/a":                  "a",
			}), "capgate.yml", agent)
			at, heard := completions(t)
			cmd := command(t, program, "run", "--command", "gw:up__tidy")
			write(t, cmd.Dir, "opencode.json", jsonText(t, map[string]any{
				"autoupdate": false, "share": "disabled", "model": "loc/m", "small_model": "loc/m",
				"mcp": map[string]any{"gw": map[string]any{"type": "remote", "url": g.at, "enabled": true, "headers": map[string]string{"Authorization": "Bearer {env:TOKEN}"}}},
				"provider": map[string]any{"loc": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "name": "loc", "options": map[string]any{"baseURL": at, "apiKey": "x"},
					"models": map[string]any{"m": map[string]any{"name": "m", "tool_call": true, "limit": map[string]int{"context": 100000, "output": 1000}}},
				}},
			}))
			cmd.Env = append(cmd.Env, "TOKEN="+g.token, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
			o := run(t, cmd)
			_, err := os.Stat(mark)
			switch ran := err == nil; {
			case ran != (agent == "boss"):
				t.Errorf("it ran: %t; ended with %d: %s%s", ran, o.code, o.out, o.err)
			case !ran && strings.Contains(heard.String(), "Tidy up."):
				t.Errorf("the model was sent the prompt: %s", heard.String())
			}
		})
	}
}
