package capability_test

import (
	"testing"

	"capgate/capability"
)

// TestSpecialRequirement: what no wildcard covers is told by its name or address.
func TestSpecialRequirement(t *testing.T) {
	for text, want := range map[string]bool{
		"net.get{url=http://169.254.169.254/}": true,
		"net.get{url=http://localhost:8080/}":  true,
		"net.get{url=http://printer.local/}":   true,
		"net.get{url=http://[::1]/}":           true,
		"net.get{url=https://example.com/}":    false,
		"net.get{url=https://8.8.8.8/}":        false,
		"net.get{url=ftp://localhost/}":        false, // nobody can tell where it leads
		"fs.read{path=/localhost}":             false,
		"tool.invoke{tool=localhost}":          false,
	} {
		need, err := capability.ParseRequirement(text, capability.View{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if got := need.Special(); got != want {
			t.Errorf("%s: special is %v", text, got)
		}
	}
}
