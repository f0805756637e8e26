package provider_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"capgate/capability"
)

// TestVerbs: every verb that a tool of a provider can need is in the catalogue, where
// who grants one looks for it.
func TestVerbs(t *testing.T) {
	known := map[string]bool{}
	for _, e := range capability.Catalogue() {
		known[string(e.Verb)] = true
	}
	quoted := regexp.MustCompile(`"([a-z_]+)"`)
	asked := regexp.MustCompile(`needs\("[a-z_]+"\)|verb: +"[a-z_]+"|(?:webSearch|webFetch|codeExecution|files) += "[a-z_]+"|case ("[a-z_]+"(, )?)+:\n\t\treturn tool\{use: unscoped, verb: (kind|short)\}`)
	found := 0
	for _, file := range []string{"chat.go", "container.go", "google.go", "input.go", "messages.go", "responses.go", "tool.go", "tooltable.go", "watch.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range asked.FindAllString(string(text), -1) {
			for _, name := range quoted.FindAllStringSubmatch(place, -1) {
				if verb := "provider." + name[1]; !known[verb] {
					t.Errorf("%s asks for %s, which is not in the catalogue: %s", file, verb, strings.TrimSpace(place))
				}
				found++
			}
		}
	}
	const least = 15
	if found < least {
		t.Errorf("only %d places that ask for a verb were found", found)
	}
}
