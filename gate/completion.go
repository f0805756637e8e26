package gate

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"capgate/capability"
)

// Completing is a template of which a variable is being completed.
type Completing struct {
	Template    string
	Name, Value string            // of the variable, as far as it goes
	Others      map[string]string // what stands for others
}

// Completion decides whether a server may be asked how a variable of a template goes on. That is for
// agents that may read whatever the template may become, and what is given for the variables must be some
// of that: a server that looks for what begins so would look elsewhere else. What the verdict is about
// is the resource as far as it is known.
func (g *Gate) Completion(agent string, r *Resources, c Completing) Verdict {
	v := g.TemplateVerdict(agent, r, c.Template)
	if !v.Decision.Allowed() {
		return v
	}
	given := maps.Clone(c.Others)
	maps.DeleteFunc(given, func(_, value string) bool { return value == "" })
	if given == nil {
		given = map[string]string{}
	}
	given[c.Name] = c.Value + some
	goesOn := g.Resource(agent, r, fillWith(c.Template, given))
	given[c.Name] = c.Value
	text := fillWith(c.Template, given)
	need, err := capability.Keyed(readResource, capability.Word{Dim: "uri", Value: text})
	if err != nil {
		return refused(err)
	}
	isRead := goesOn.Decision.Need() == nil || goesOn.Decision.Need().Verb() == readResource
	if name, code, why := c.strays(); why != "" {
		if !isRead {
			need = goesOn.Decision.Need()
		}
		return Verdict{Decision: capability.Denial(code, need), Argument: name, Why: why, Whole: true}
	}
	for _, uri := range c.reached(given) {
		if v := g.Resource(agent, r, uri.text); !v.Decision.Allowed() {
			v.Argument, v.Whole = uri.name, true
			return v
		}
	}
	asIs := g.Resource(agent, r, text)
	switch {
	case goesOn.Decision.Allowed() && asIs.Decision.Allowed():
		return asIs
	case isRead:
		goesOn.Decision = goesOn.Decision.About(need)
	}
	if !goesOn.Decision.Allowed() {
		goesOn.Argument, goesOn.Whole = c.Name, true
	}
	return goesOn
}

// target is what a server may look at for the text of a variable.
type target struct{ name, text string }

// reached are the files that a server looks at which joins what is given for one variable to the folder
// that it stands in, whatever stands around it: as they are, where the text does not go on behind a slash,
// and where it does, what is in them.
func (c Completing) reached(given map[string]string) []target {
	if !c.isFile() {
		return nil
	}
	var all []target
	for _, name := range slices.Sorted(maps.Keys(given)) {
		before, _, _ := c.place(name)
		before = fillWith(before, given)
		for _, value := range []string{given[name], given[name] + some} {
			if value != "" && !strings.HasSuffix(value, "/") {
				all = append(all, target{name, before[:strings.LastIndexByte(before, '/')+1] + encoded(value)})
			}
		}
	}
	return all
}

func (c Completing) isFile() bool {
	scheme, _, _ := strings.Cut(c.Template, ":")
	return strings.EqualFold(scheme, "file")
}

// anew begins a URI of another scheme, or a path on another disk; disk begins the name of a file on one.
var (
	anew = regexp.MustCompile(`^([A-Za-z]:\\?$|[A-Za-z][A-Za-z0-9+.-]*:[/\\])`)
	disk = regexp.MustCompile(`^[A-Za-z]:`)
)

// strays says which text leads away from where it stands in the template, whatever comes behind it, and how.
func (c Completing) strays() (name string, code capability.Code, why string) {
	if _, twice := c.Others[c.Name]; twice {
		return c.Name, capability.MalformedArguments, fmt.Sprintf("the variable %q is given twice", c.Name)
	}
	for _, name := range append(slices.Sorted(maps.Keys(c.Others)), c.Name) {
		value := c.Others[name]
		if name == c.Name {
			value = c.Value
		}
		before, expression, ok := c.place(name)
		if !ok {
			return name, capability.MalformedArguments, fmt.Sprintf("the template has no variable %q", name)
		}
		if strings.ContainsAny(before, "?#") || strings.ContainsAny(expression, "?&#") {
			before = "" // it is nothing of the path
		}
		if why := c.leadsAway(before, value); why != "" {
			return name, capability.ScopeViolation, why
		}
	}
	return "", "", ""
}

// maxEscapes is how often a text may be escaped.
const maxEscapes = 4

// leadsAway says how a text leads away from what stands before it, however often a server unescapes it.
// What has nothing before it is all of the URI, which is decided.
func (c Completing) leadsAway(before, value string) string {
	for range maxEscapes {
		if slices.ContainsFunc(strings.FieldsFunc(value, isSeparator), isDots) {
			return "what is given for it leads up"
		}
		if before != "" && (startsAnew(before, value) || c.isFile() && disk.MatchString(value)) {
			return "what is given for it can be read in several ways, or begins somewhere else"
		}
		plain, err := url.PathUnescape(value)
		if err == nil && plain == value {
			return ""
		}
		if err != nil {
			break
		}
		value = plain
	}
	return "what is given for it can be read in several ways"
}

func isSeparator(c rune) bool { return c == '/' || c == '\\' }

// isDots reports whether a segment may be taken for a folder further up, or for the same one.
func isDots(segment string) bool { return strings.Trim(segment, ".") == "" }

// startsAnew reports whether a server that joins a text to a folder may look elsewhere.
func startsAnew(before, value string) bool {
	return strings.Contains(value, `\`) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' }) ||
		strings.HasPrefix(value, "/") && !strings.HasSuffix(before, "://") || strings.HasPrefix(value, "~") || anew.MatchString(value)
}

// place finds the expression that a variable stands in, and what stands before it.
func (c Completing) place(name string) (before, expression string, ok bool) {
	for at := 0; ; {
		begin := strings.IndexByte(c.Template[at:], '{')
		if begin < 0 {
			return "", "", false
		}
		before = c.Template[:at+begin]
		expression, _, ok = strings.Cut(c.Template[at+begin+1:], "}")
		if name != "" && slices.Contains(variables(expression), name) {
			return before, expression, ok
		}
		at += begin + 1
	}
}

// variables are the names in an expression of a template.
func variables(expression string) []string {
	names := strings.Split(strings.TrimLeft(expression, "+#./;?&*"), ",")
	for i, name := range names {
		name, _, _ = strings.Cut(name, ":")
		names[i] = strings.TrimRight(name, "*.")
	}
	return names
}

// encoded is a text as it stands in a URI: with what can stand in none escaped.
func encoded(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
