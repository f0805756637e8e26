package gate

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/mapping"
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
	if why := c.tooMuch(); why != "" { // before all that takes long to look at
		need, err := capability.Keyed(readResource, capability.Word{Dim: "uri", Value: c.Template[:strings.IndexByte(c.Template+"{", '{')]})
		if err != nil {
			return refused(err)
		}
		return Verdict{Decision: capability.Denial(capability.MalformedArguments, need), Argument: c.Name, Why: why, Whole: true}
	}
	whole := g.TemplateVerdict(agent, r, c.Template)
	if !whole.Decision.Allowed() {
		return whole
	}
	text, onward := c.texts()
	need, err := capability.Keyed(readResource, capability.Word{Dim: "uri", Value: c.filled(c.Value, "_")})
	if err != nil {
		return refused(err)
	}
	asIs, goesOn := g.Resource(agent, r, text), g.Resource(agent, r, onward)
	isPath := c.isFile() || r.reads("fs", c.Template, text, onward)
	if name, why := c.strays(isPath); why != "" {
		if about := asIs.Decision.Need(); about != nil {
			need = about
		}
		return Verdict{Decision: capability.Denial(capability.MalformedArguments, need), Argument: name, Why: why, Whole: true}
	}
	for _, uri := range c.besides(isPath) {
		if v := g.every(agent, r, uri); !v.Decision.Allowed() {
			if v.Argument, v.Whole = c.Name, true; isRead(v) {
				v.Decision, v.Needs = v.Decision.About(need), nil
			}
			return r.about(v, c.filled(strings.TrimSuffix(c.Value, "/")+"/", whatever))
		}
	}
	return c.about(need, asIs, goesOn)
}

// Completes returns what reports whether an agent may be told that a variable goes on to be some text: what the template
// becomes with it may be read, also where it stands for what comes behind the last slash that is given, or is in the folder
// that is given without one.
func (g *Gate) Completes(agent string, r *Resources, c Completing) func(text string) bool {
	isPath := c.isFile() || r.reads("fs", c.Template, c.filled(c.Value, whatever))
	folder := c.Value[:strings.LastIndexByte(c.Value, '/')+1]
	before, expression, after, _ := c.place(c.Name)
	may := func(uri string) bool { return g.Resource(agent, r, uri).Decision.Allowed() }
	becomes := func(text string) bool {
		return leadsAway(before, expression, after, text) == "" && may(c.filled(text, whatever)) && (isPath || may(c.joined(text)) && may(c.expanded(text)))
	}
	beside := g.beside(agent, r, c, isPath)
	named := strings.TrimSuffix(c.Value, "/") + "/"
	return func(text string) bool {
		rest, whole := strings.CutPrefix(text, folder)
		last := text[strings.LastIndexByte(text, '/')+1:]
		return len(text) <= maxGiven && becomes(text) && (whole || becomes(folder+text)) && beside(rest) && beside(last) &&
			(!isPath || c.Value == "" || becomes(named+strings.TrimPrefix(text, named)) && becomes(named+last))
	}
}

// What is given for variables is a name or a path.
const (
	maxGiven   = mapping.MaxURI // bytes, all of it
	maxOthers  = 32             // variables
	maxFolders = 64             // that a path goes through
)

// tooMuch says what is given beyond that.
func (c Completing) tooMuch() string {
	all := len(c.Name) + len(c.Value)
	for name, value := range c.Others {
		all += len(name) + len(value)
	}
	switch {
	case all > maxGiven:
		return fmt.Sprintf("what is given is longer than %d bytes", maxGiven)
	case len(c.Template) > maxGiven:
		return fmt.Sprintf("the template is longer than %d bytes", maxGiven)
	case len(c.Others) > maxOthers, strings.Count(c.Template, "{") > maxOthers:
		return fmt.Sprintf("there are more than %d variables", maxOthers)
	case strings.Count(c.Value, "/") > maxFolders:
		return fmt.Sprintf("it goes through more than %d folders", maxFolders)
	}
	return ""
}

// besides are what must be readable as well. Of a path it is each folder that it goes through, as a link may lead
// out and one behind it back in; and whatever there may be in the last of them, which is the name itself where that is
// a folder, as that is told of. Of anything else it is what becomes of the template where a server takes what is not
// given for nothing.
func (c Completing) besides(isPath bool) (uris []string) {
	switch {
	case !isPath:
		return []string{c.joined(c.Value + some)}
	case c.Value == "":
		return nil
	}
	with := func(value string) { uris = append(uris, c.filled(value, whatever)) }
	for i := range len(c.Value) {
		if c.Value[i] == '/' {
			with(c.Value[:i])
		}
	}
	with(strings.TrimSuffix(c.Value, "/") + "/" + whatever)
	return uris
}

var (
	severalSlashes = regexp.MustCompile(`//+`)
	lastDots       = regexp.MustCompile(`([^./])\.+(/|$)`) // before an extension that is not given
)

// joined is what a server that joins names makes of the template.
func (c Completing) joined(value string) string {
	text := c.filled(value, "")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	host := "" // as where the template names none
	if !strings.HasPrefix(c.Template, scheme+":///") {
		host, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
	}
	rest = lastDots.ReplaceAllString(severalSlashes.ReplaceAllString("/"+rest, "/"), "$1$2")
	return scheme + "://" + strings.TrimRight(host+rest, "/")
}

// expanded is what a client makes of the template, as RFC 6570 says.
func (c Completing) expanded(value string) string {
	if _, expression, _, _ := c.place(c.Name); !strings.ContainsAny(expression[:min(1, len(expression))], "+#") {
		value = strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(value)
	}
	return c.filled(value, whatever)
}

// texts are what the template becomes as far as is given, and with something more.
func (c Completing) texts() (asIs, onward string) {
	return c.filled(c.Value, whatever), c.filled(c.Value+some, whatever)
}

// filled is the template with a value, and another text in the place of what is not given.
func (c Completing) filled(value, open string) string {
	given := c.given()
	given[c.Name] = encoded(value)
	return filling{plain: open, deep: open, given: given}.of(c.Template)
}

// given is what stands for other variables.
func (c Completing) given() map[string]string {
	given := map[string]string{}
	for name, value := range c.Others {
		if value != "" {
			given[name] = encoded(value)
		}
	}
	return given
}

// about is the verdict on how it goes on, of what is given if that is decided alike.
func (c Completing) about(need *capability.Requirement, asIs, goesOn Verdict) Verdict {
	switch {
	case goesOn.Decision.Allowed() && asIs.Decision.Allowed():
		return asIs
	case isRead(goesOn):
		goesOn.Decision, goesOn.Needs = goesOn.Decision.About(need), nil
	}
	if !goesOn.Decision.Allowed() {
		goesOn.Argument, goesOn.Whole = c.Name, true
	}
	return goesOn
}

// isRead reports whether a verdict is about a resource as such, and not about what reading it does.
func isRead(v Verdict) bool {
	need := v.Decision.Need()
	return need == nil || need.Verb() == readResource
}

func (c Completing) isFile() bool {
	scheme, _, _ := strings.Cut(c.Template, ":")
	return strings.EqualFold(scheme, "file")
}

// isFolder reports whether a template is a folder and one variable for what is in it. Of any other one, servers
// take more than one folder for that in which they look.
func (c Completing) isFolder() bool {
	folder, expression, _ := strings.Cut(c.Template, "{")
	name, rest, closed := strings.Cut(expression, "}")
	return closed && rest == "" && strings.HasSuffix(folder, "/") && strings.Trim(name, "+*") == c.Name
}

// plainPath is a path that no server takes for another one: no pattern, no quotes, nothing that is expanded,
// unescaped, split or left out.
var plainPath = regexp.MustCompile(`^(([.-]*[A-Za-z0-9_][A-Za-z0-9_.-]*)/)*([.-]*[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)

// anew begins a URI of another scheme, or a path on another disk.
var anew = regexp.MustCompile(`^([A-Za-z]:$|[A-Za-z][A-Za-z0-9+.-]*:/)`)

// strays says which text leads away from where it stands in the template, whatever comes behind it, and how.
func (c Completing) strays(isPath bool) (name, why string) {
	if _, twice := c.Others[c.Name]; twice {
		return c.Name, fmt.Sprintf("the variable %q is given twice", c.Name)
	}
	for _, name := range append(slices.Sorted(maps.Keys(c.Others)), c.Name) {
		value := c.Others[name]
		if name == c.Name {
			value = c.Value
		}
		before, expression, after, ok := c.place(name)
		if !ok {
			return name, fmt.Sprintf("the template has no variable %q", name)
		}
		switch {
		case isPath && !c.isFolder():
			return name, "of files, only what stands behind a folder is completed"
		case isPath && !plainPath.MatchString(value):
			return name, "of a file, it is completed from names of ASCII letters, digits, _, - and dots, and not upwards"
		}
		if why := leadsAway(before, expression, after, value); why != "" {
			return name, why
		}
	}
	return "", ""
}

// maxEscapes is how often a text may be escaped.
const maxEscapes = 4

// leadsAway says how a text in the place of an expression leads away from what stands before it, however often a
// server unescapes it. What has nothing before it is all of the URI, which is decided. Where something of the
// path comes behind it, an expression of one name has no slash: what is below that name is of other templates.
func leadsAway(before, expression, after, value string) string {
	oneName := after != "" && !strings.ContainsAny(after[:1], "?#") && !strings.ContainsAny(expression, "+#/*?&")
	if strings.ContainsAny(before, "?#") || strings.ContainsAny(expression, "?#") {
		before, oneName = "", false // it is nothing of the path
	}
	for range maxEscapes {
		if slices.ContainsFunc(strings.FieldsFunc(value, isSeparator), isDots) {
			return "what is given for it leads up"
		}
		if oneName && strings.ContainsFunc(value, isSeparator) {
			return "there is no slash in it"
		}
		if before != "" && startsAnew(before, value) {
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

// place finds the expression that a variable stands in, and what stands before it and behind, without braces.
func (c Completing) place(name string) (before, expression, after string, ok bool) {
	for rest := c.Template; ; {
		_, after, opens := strings.Cut(rest, "{")
		expression, more, closed := strings.Cut(after, "}")
		switch {
		case !opens || !closed:
			return "", "", "", false
		case name != "" && !strings.Contains(expression, "{") && slices.Contains(variables(expression), name):
			return c.Template[:len(c.Template)-len(after)-1], expression, strings.TrimLeft(more, "{"), true
		}
		rest = more
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
