package gate

import (
	"regexp"
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
	given := map[string]string{}
	for name, value := range c.Others {
		if value != "" {
			given[name] = value
		}
	}
	given[c.Name] = c.Value + some
	goesOn := fillWith(c.Template, given)
	given[c.Name] = c.Value
	ends := fillWith(c.Template, given)
	need, err := capability.Keyed(readResource, capability.Word{Dim: "uri", Value: ends})
	if err != nil {
		return refused(err)
	}
	for name := range given {
		if code, why := c.strays(name, given[name]); why != "" {
			return Verdict{Decision: capability.Denial(code, need), Argument: name, Why: why}
		}
	}
	begun := g.Resource(agent, r, goesOn)
	asIs := g.Resource(agent, r, ends)
	switch denied := !asIs.Decision.Allowed(); {
	case denied && (!begun.Decision.Allowed() || isUp(c.Value)):
		asIs.Argument = c.Name
		return asIs
	case !begun.Decision.Allowed():
		begun.Argument = c.Name
		return begun
	case denied && begun.Decision.Need().Verb() == readResource: // as it ends in a slash, behind which something comes
		begun.Decision = begun.Decision.About(need)
		return begun
	case denied:
		return begun
	}
	return asIs
}

// isUp reports whether a text ends with nothing but dots behind its last slash: it may be taken for a
// folder further up.
func isUp(value string) bool {
	last := value[strings.LastIndexByte(value, '/')+1:]
	return last != "" && strings.Trim(last, ".") == ""
}

// anew begins a URI of another scheme, or a path on another disk.
var anew = regexp.MustCompile(`^([A-Za-z]:|[A-Za-z][A-Za-z0-9+.-]*:/)`)

// strays says how a text leads away from where it stands in the template, whatever comes behind it: many
// servers join it to a folder, and such a one begins anew.
func (c Completing) strays(name, value string) (code capability.Code, why string) {
	before, expression, ok := c.place(name)
	switch {
	case !ok:
		return capability.MalformedArguments, "the template has no such variable"
	case strings.Contains(value, `\`), strings.ContainsFunc(value, func(c rune) bool { return c < ' ' }):
		return capability.ScopeViolation, "what is given for it can be read in several ways"
	case before == "", strings.ContainsAny(before, "?#"), strings.ContainsAny(expression, "?&#"):
		return "", "" // it is all of the URI, or nothing of its path, and decided as such
	case strings.HasPrefix(value, "/") && !strings.HasSuffix(before, "://"), strings.HasPrefix(value, "~"), anew.MatchString(value):
		return capability.ScopeViolation, "what is given for it begins somewhere else"
	}
	return "", ""
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
		for _, one := range variables(expression) {
			if one == name && name != "" {
				return before, expression, ok
			}
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
