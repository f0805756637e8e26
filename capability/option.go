package capability

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// An excess is what an option makes a program do beyond what its name says.
type excess uint8

const (
	runsPrograms excess = iota
	followsLinks
	readsUnnamed
	writesUnasked
	excesses
)

func (e excess) String() string {
	return [excesses]string{
		runsPrograms:  "can run other programs",
		followsLinks:  "follows links to wherever they lead",
		readsUnnamed:  "reads files that no argument names",
		writesUnasked: "writes or deletes where nothing says so",
	}[e]
}

// A rule says which arguments would make a program, or a subcommand, do more
// than its name says. Options stand in its lists with their dashes; "-x" is the
// letter in any cluster.
//
// A word is judged as an option wherever it stands, also behind "--" and where
// it may be the value of another option. In "git clone -b -- --upload-pack=x"
// the dashes are the value of -b, and "git pull -- --upload-pack=x" hands its
// last word on to a git fetch, which runs x.
type rule struct {
	names   []string                 // what the rule is for
	denied  [excesses][]string       // options by what they lead to
	whole   []string                 // options that are complete though a denied one goes on
	valued  string                   // letters that take the rest of a word as their value
	keeps   []string                 // first words with which the program follows no links
	bundled bool                     // the first word is letters also without a dash
	only    []string                 // when set, the long options that are allowed, no others
	letters string                   // with only, the letters that are allowed
	check   func(word string) string // what else a word must not be, and why
	folder  []string                 // options that change to a folder before words are read
	before  []string                 // the options allowed in front of the subcommand
	subs    map[string]*rule         // the subcommands that are allowed
}

// violation says why an argv makes its program do more than its name says, ""
// if it does not. For a program without a rule it never does.
func violation(argv []string) string {
	if len(argv) == 0 {
		return "no program is named"
	}
	r := ruleFor(argv[0])
	if r == nil {
		return ""
	}
	why := r.judge(argv[1:])
	if _, once := r.moves(argv[1:]); why == "" && !once {
		why = "would change the folder more than once"
	}
	if why != "" {
		why = clip(path.Base(argv[0])) + " " + why
	}
	return why
}

// folder returns the folder that a program changes to before it reads its other
// arguments, as in git -C, "" if it stays: paths among its arguments must be
// read from there too. It is not ok for a program to change more than once,
// where each place hangs from the one before.
func folder(argv []string) (dir string, ok bool) {
	if len(argv) == 0 {
		return "", true
	}
	r := ruleFor(argv[0])
	if r == nil {
		return "", true
	}
	return r.moves(argv[1:])
}

// ruleFor returns the rule of a program, nil if it has none. The number in md5sum is no version.
func ruleFor(cmd string) *rule {
	name := programName(cmd)
	return cmp.Or(optionRules[name], optionRules[unversioned(name)], optionRules[binutil(name)])
}

// binutil is a tool of binutils behind what it was built for, as in gcc-ar and
// x86_64-linux-gnu-objdump-12; "" for anything else.
func binutil(name string) string {
	name = strings.TrimRight(name, "0123456789.-")
	if last := name[strings.LastIndexByte(name, '-')+1:]; slices.Contains(binutils, last) {
		return last
	}
	return ""
}

var binutils = list("ar nm ranlib objdump objcopy strip strings readelf size addr2line")

// byName makes a table of rules.
func byName(rules ...rule) map[string]*rule {
	table := map[string]*rule{}
	for i, r := range rules {
		for _, name := range r.names {
			table[name] = &rules[i]
		}
	}
	return table
}

func (r *rule) moves(args []string) (dir string, once bool) {
	if len(r.subs) > 0 {
		args, _ = r.split(args)
	}
	changes := 0
	for i, word := range args {
		o := r.read(word, i == 0)
		for _, name := range r.folder {
			value, is := o.is(name)
			if !is {
				continue
			}
			if changes++; word[0] != '-' {
				changes++ // which word the bundled letters take is anyone's guess
			}
			if dir = value; value == "" && i+1 < len(args) {
				dir = args[i+1]
			}
		}
	}
	return dir, changes < 2
}

// judge says why the arguments are too much.
func (r *rule) judge(args []string) string {
	if len(r.subs) == 0 {
		return r.words(args)
	}
	before, rest := r.split(args)
	if why := r.words(before); why != "" || len(rest) == 0 {
		return why
	}
	sub, ok := r.subs[rest[0]]
	if !ok {
		return fmt.Sprintf("%q is not among the subcommands and options that do no more than they say", clip(rest[0]))
	}
	why := r.words(rest[1:])
	if why == "" && sub.adds() {
		why = sub.words(rest[1:])
	}
	if why != "" {
		why = rest[0] + " " + why
	}
	return why
}

// adds reports whether a subcommand has a rule beyond that of its program.
func (r *rule) adds() bool {
	return r.check != nil || slices.ContainsFunc(r.denied[:], func(list []string) bool { return len(list) > 0 })
}

// split separates the options in front of a subcommand from it and the rest.
func (r *rule) split(args []string) (before, rest []string) {
	for i := 0; i < len(args); i++ {
		if !slices.Contains(r.before, args[i]) {
			return args[:i], args[i:]
		}
		if slices.Contains(r.folder, args[i]) {
			i++
		}
	}
	return args, nil
}

// words says which of the words is too much and why.
func (r *rule) words(args []string) string {
	keeps := len(args) > 0 && slices.Contains(r.keeps, args[0])
	for i, word := range args {
		if o := r.read(word, i == 0); o.isOne() {
			if why := r.judgeOption(o, keeps); why != "" {
				return why
			}
		}
		if r.check == nil {
			continue
		}
		if why := r.check(word); why != "" {
			return why
		}
	}
	return ""
}

// judgeOption says why an option is too much.
func (r *rule) judgeOption(o option, keeps bool) string {
	for e := range excesses {
		if e == followsLinks && keeps {
			continue
		}
		for _, denied := range r.denied[e] {
			if _, is := o.is(denied); is {
				return denied + " " + e.String()
			}
		}
	}
	if r.only != nil && !o.among(r.only, r.letters) {
		return fmt.Sprintf("%q is not among the options that do no more than they say", clip(o.word))
	}
	return ""
}

// An option is a word as a program reads it that takes it for options.
type option struct {
	word  string
	long  string // --name, perhaps abbreviated, "" if it is none
	value string // behind the = of a long one
	short string // the letters of a cluster, up to the first that takes the rest
	whole bool   // long is no abbreviation of a denied one
}

func (r *rule) read(word string, first bool) option {
	o := option{word: word}
	switch {
	case strings.HasPrefix(word, "--"):
		if o.long, o.value, _ = strings.Cut(word, "="); o.long == "--" {
			o.long = ""
		}
		o.whole = slices.Contains(r.whole, o.long)
	case strings.HasPrefix(word, "-"), first && r.bundled:
		o.short = strings.TrimPrefix(word, "-")
		if i := strings.IndexAny(o.short, r.valued); i >= 0 && word[0] == '-' {
			o.short = o.short[:i+1]
		}
	}
	return o
}

// isOne reports whether the word can be an option at all.
func (o option) isOne() bool { return o.short != "" || strings.HasPrefix(o.word, "-") }

// is reports whether the word is the option, holds its letter or abbreviates it,
// and returns the value that is in the same word.
func (o option) is(name string) (value string, ok bool) {
	switch {
	case len(name) == len("-x"):
		i := strings.IndexByte(o.short, name[1])
		if i < 0 {
			return "", false
		}
		return strings.TrimPrefix(o.word, "-")[i+1:], true
	case name[1] != '-':
		return "", o.word == name
	}
	return o.value, o.long != "" && strings.HasPrefix(name, o.long) && (len(name) == len(o.long) || !o.whole)
}

// among reports whether the options are among those allowed.
func (o option) among(long []string, letters string) bool {
	if strings.HasPrefix(o.word, "--") {
		return slices.Contains(long, o.long)
	}
	return strings.Trim(o.short, letters) == ""
}
