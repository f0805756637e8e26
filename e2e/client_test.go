//go:build unix

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts a file into the folder that a command runs in.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// jsonText writes a value as JSON.
func jsonText(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestInspector lists and calls with the inspector, in each era it speaks.
func TestInspector(t *testing.T) {
	program := installed(t, inspector)
	g := serve(t, office(t), "capgate.yml", "scout")
	for _, era := range []string{"legacy", "auto", "modern"} {
		inspect := func(t *testing.T, args ...string) outcome {
			return run(t, command(t, append([]string{
				program, "--cli", g.at, "--transport", "http", "--header", "Authorization: Bearer " + g.token, "--protocol-era", era, "--method",
			}, args...)...))
		}
		result := func(o outcome) answer { return answer{message: message{Result: json.RawMessage(o.out)}} }
		t.Run(era+"/list", func(t *testing.T) {
			o := inspect(t, "tools/list")
			if o.code != 0 {
				t.Fatalf("ended with %d: %s%s", o.code, o.out, o.err)
			}
			sameTools(t, result(o).names())
		})
		t.Run(era+"/call", func(t *testing.T) {
			o := inspect(t, "tools/call", "--tool-name", goodCall, "--tool-args-json", goodArgs)
			allowed(t, result(o), goodText)
		})
		t.Run(era+"/denied", func(t *testing.T) {
			o := inspect(t, "tools/call", "--tool-name", goodCall, "--tool-args-json", badArgs)
			denied(t, result(o), "scope_violation")
			if o.code == 0 {
				t.Error("the inspector took the denial for a success")
			}
		})
	}
}

// TestMcporter lists and calls with mcporter.
func TestMcporter(t *testing.T) {
	program := installed(t, mcporter)
	g := serve(t, office(t), "capgate.yml", "scout")
	config := jsonText(t, map[string]any{"mcpServers": map[string]any{
		"gw": map[string]any{"baseUrl": g.at, "headers": map[string]string{"Authorization": "Bearer " + g.token}},
	}})
	mcporter := func(t *testing.T, args ...string) outcome {
		cmd := command(t, append([]string{program}, args...)...)
		write(t, cmd.Dir, "config/mcporter.json", config)
		return run(t, cmd)
	}
	t.Run("list", func(t *testing.T) {
		o := mcporter(t, "list", "gw", "--json")
		list := answer{message: message{Result: json.RawMessage(o.out)}}
		sameTools(t, list.names())
	})
	t.Run("call", func(t *testing.T) {
		if o := mcporter(t, "call", "gw."+goodCall, "--args", goodArgs, "--output", "json"); o.code != 0 || !strings.Contains(o.out, goodText) {
			t.Errorf("ended with %d: %s%s", o.code, o.out, o.err)
		}
	})
	t.Run("denied", func(t *testing.T) {
		if o := mcporter(t, "call", "gw."+goodCall, "--args", badArgs); o.code == 0 || !strings.Contains(o.out+o.err, badText) {
			t.Errorf("ended with %d: %s%s", o.code, o.out, o.err)
		}
	})
}

// TestOpencode connects with opencode, over HTTP and as a process that it starts.
func TestOpencode(t *testing.T) {
	program := installed(t, opencode)
	dir := office(t)
	g := serve(t, dir, "capgate.yml", "scout")
	cmd := command(t, program, "mcp", "list")
	write(t, cmd.Dir, "opencode.json", jsonText(t, map[string]any{"autoupdate": false, "mcp": map[string]any{
		"gw":    map[string]any{"type": "remote", "url": g.at, "enabled": true, "headers": map[string]string{"Authorization": "Bearer {env:TOKEN}"}},
		"local": map[string]any{"type": "local", "command": append([]string{os.Getenv("CAPGATE_BIN")}, stdioArgs(dir)...), "enabled": true},
	}}))
	cmd.Env = append(cmd.Env, "TOKEN="+g.token, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
	o := run(t, cmd)
	for _, name := range []string{"gw", "local"} {
		if !strings.Contains(o.out, fmt.Sprintf("%s \x1b[90mconnected", name)) {
			t.Errorf("%s is not connected, ended with %d: %q%s", name, o.code, o.out, o.err)
		}
	}
}
