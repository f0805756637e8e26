package skills

import (
	"fmt"
	"path"
	"strings"

	"capgate/capability"
)

// paths reads Read(src/**), a pattern as in a .gitignore file: //abs, ~/home, /below
// the project, rel to where the agent works. A name without a slash is meant at any
// depth. A path is itself and all beneath it, a glob with an ending exactly the glob.
func (d *derivation) paths(verbs []string, spec string) ([]capability.Spec, string) {
	in, rel, why := d.locate(spec)
	if why != "" {
		return nil, why
	}
	values := []string{rel}
	if in == "" && !strings.Contains(strings.TrimSuffix(spec, "/"), "/") {
		values = anyDepth(rel)
	}
	if fitsFolder(rel, strings.HasSuffix(spec, "/")) && values[0] != "**" { // a folder that matches is all that is in it
		values = append(values, values[0]+"/**")
	}
	specs := scoped(verbs, "paths", values...)
	if in == "" {
		return specs, ""
	}
	for i := range specs {
		specs[i] = capability.Spec{Verb: specs[i].Verb}.With("in", in).With("paths", values...)
	}
	return specs, ""
}

// anyDepth is what a name without a slash matches: it and what is beneath it,
// wherever it lies.
func anyDepth(name string) []string {
	if strings.Trim(name, "*") == "" {
		return []string{"**"}
	}
	if strings.Contains(name, "*") {
		return []string{"**/" + name}
	}
	return []string{"**/" + name, "**/" + name + "/**"}
}

// fitsFolder reports whether a glob may match a folder. What has an ending, as *.md
// does, is taken for files, unless a slash behind it says that it is no file.
func fitsFolder(glob string, noFile bool) bool {
	last := path.Base(glob)
	return strings.Contains(glob, "*") && last != "**" && (noFile || !strings.Contains(last, "*."))
}

// locate splits a path into the directory it hangs from, "" for where the agent
// works, and the rest.
func (d *derivation) locate(spec string) (in, rel, why string) {
	full, why := d.expand(spec)
	if full != strings.Trim(spec, `"`) {
		full = "/" + full
	}
	switch spec = full; {
	case why != "":
		return "", "", why
	case spec == "":
		return "", "", "it names no path"
	case strings.HasPrefix(spec, "//"):
		in, rel = "/", strings.TrimLeft(spec, "/")
	case strings.HasPrefix(spec, "~/"):
		in, rel = d.opts.Home, spec[2:]
	case strings.HasPrefix(spec, "/"):
		in, rel = d.project, spec[1:]
	default:
		return d.relative(spec)
	}
	if !strings.HasPrefix(in, "/") {
		return "", "", "nothing says where that path begins"
	}
	_, rel, why = d.relative(rel)
	return in, rel, why
}

// maxStars bounds what it costs to hold a path against what agents hold.
const maxStars = 8

// relative reads a path that hangs from somewhere.
func (d *derivation) relative(spec string) (in, rel, why string) {
	rel = strings.TrimPrefix(strings.TrimSuffix(spec, "/"), "./")
	switch {
	case rel == "" || rel == ".":
		return "", ".", ""
	case strings.ContainsAny(rel, `?[]{}\!$~`+"`'\""):
		return "", "", "the path holds characters that not everybody reads in one way"
	case strings.Count(rel, "*") > maxStars:
		return "", "", fmt.Sprintf("the path holds more than %d stars", maxStars)
	case !strings.Contains(rel, "*") && path.Clean(rel) != rel || strings.Contains("/"+rel+"/", "/../"):
		return "", "", "the path is not written in its plain form"
	}
	return "", rel, ""
}

// expand fills in a variable that a text begins with and that stands for a folder:
// that of the skill, of its plugin, of its project.
func (d *derivation) expand(text string) (expanded, why string) {
	text = strings.Trim(text, `"`)
	for _, v := range []struct{ name, dir string }{
		{"{baseDir}", d.dir},
		{"${CLAUDE_SKILL_DIR}", d.dir},
		{"${CLAUDE_PLUGIN_ROOT}", d.plugin},
		{"${CLAUDE_PROJECT_DIR}", d.project},
	} {
		if rest, ok := strings.CutPrefix(text, v.name); ok {
			if v.dir == "" {
				return "", "nothing says where " + v.name + " is"
			}
			return v.dir + rest, ""
		}
	}
	return text, ""
}
