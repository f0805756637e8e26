package capability

import "strings"

// readsEnvironment denies jq programs that read the environment, where secrets
// are, or other files. Which word is the program depends on the options before
// it, so that any may be.
func readsEnvironment(word string) string {
	for i := 0; i < len(word); {
		if !isNameStart(word[i]) {
			i++
			continue
		}
		start := i
		for i < len(word) && (isNameStart(word[i]) || word[i] >= '0' && word[i] <= '9') {
			i++
		}
		if why := readsByName(word[:start], word[start:i], word[i:]); why != "" {
			return why
		}
	}
	return ""
}

// readsByName says what a name in a jq program reads. Directly behind a dot it
// is a field, behind a quote a string, behind a dollar a variable; ENV is one of
// those, and a dot behind a dot is none.
func readsByName(before, name, after string) string {
	if strings.HasSuffix(before, `"`) || strings.HasSuffix(before, ".") && !strings.HasSuffix(before, "..") {
		return ""
	}
	switch name {
	case "env":
		if strings.HasSuffix(before, "$") {
			return ""
		}
		return "can print the environment with env"
	case "ENV":
		return "can print the environment with ENV"
	case "import", "include":
		if !strings.Contains(after, `"`) {
			return ""
		}
		return name + " " + readsUnnamed.String()
	case "modulemeta", "get_search_list":
		return name + " " + readsUnnamed.String()
	}
	return ""
}

func isNameStart(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }
