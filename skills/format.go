package skills

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	maxDescription   = 1024 // characters
	maxCompatibility = 500  // characters
)

// irregular says what of the format of skills frontmatter departs from, as far as clients
// refuse skills for that.
func irregular(h *head, root *yaml.Node) string {
	compatibility, metadata := member(root, "compatibility"), member(root, "metadata")
	switch {
	case !isRegularName(h.name):
		return fmt.Sprintf("a name is 1 to %d lower-case letters, digits and single hyphens", maxName)
	case utf8.RuneCountInString(h.description) > maxDescription:
		return fmt.Sprintf("the description is over %d characters", maxDescription)
	case compatibility != nil && (!isText(compatibility) || compatibility.Value == "" || utf8.RuneCountInString(compatibility.Value) > maxCompatibility):
		return fmt.Sprintf("compatibility: is not a text of 1 to %d characters", maxCompatibility)
	case metadata != nil && !isTexts(metadata):
		return "metadata: holds something else than texts"
	}
	return ""
}

// isRegularName reports whether a text is a name by the letter of the format.
func isRegularName(text string) bool {
	for part := range strings.SplitSeq(text, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return len(text) <= maxName
}

// isTexts reports whether a node is a map of texts.
func isTexts(n *yaml.Node) bool {
	for _, value := range pairs(n) {
		if !isText(value) {
			return false
		}
	}
	return n.Kind == yaml.MappingNode
}
