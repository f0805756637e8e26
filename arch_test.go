// Package capgate_test holds what is true of the whole tree: who may import
// whom, where a dependency lives, how large things grow, what is documented.
//
// The tables below are a statement of policy. They are not to be changed to
// fix a build: a row changes when the design does, and docs/design.md says why.
package capgate_test

import (
	"io/fs"
	"os"
	"regexp"
	"testing"
)

// module is the path that every import of ours starts with.
const module = "capgate"

// imports says which of our packages a package may import (its tests may
// import what they like). A package that is not here may not exist.
//
// capability/pattern is the engine inside capability: no one else sees it, so
// that every question about authority is asked of capability.
const imports = `
wire secrets store leash brief:         nothing
door:                                   leash brief
capability/pattern:                     nothing
capability:                             capability/pattern
capability/hostfs:                      capability
guardrail:                              capability brief
agents mapping skills provider sandbox: wire capability guardrail
gate:     wire capability guardrail agents mapping
upstream: wire leash brief capability guardrail secrets sandbox
builtin:  wire capability capability/hostfs guardrail secrets sandbox store agents mapping skills upstream
proxy:    wire leash capability guardrail secrets sandbox store agents mapping skills provider gate upstream
config:   wire capability guardrail secrets sandbox store agents mapping skills provider gate upstream
clients learn doctor: everything but capability/pattern builtin proxy cmd/capgate
cmd/capgate: everything but capability/pattern
e2e:      nothing
`

// outside names the packages whose tests import none of ours either: they see
// the product as its users do.
const outside = "e2e"

// homes says which packages may import a module that is not ours. The word
// tests stands for every test file. A module that is not here may not be
// imported, and each one that is imported has its sentence in docs/design.md.
const homes = `
github.com/mark3labs/mcp-go:          upstream tests
github.com/gobwas/glob:               capability capability/pattern
go.yaml.in/yaml/v3:                   agents clients config learn mapping skills
github.com/spf13/viper:               config
github.com/spf13/cobra:               cmd/capgate
github.com/spf13/pflag:               config cmd/capgate
github.com/hashicorp/golang-lru/v2:   agents gate proxy
github.com/fsnotify/fsnotify:         agents config cmd/capgate
github.com/go-json-experiment/json:   wire mapping provider proxy guardrail tests
mvdan.cc/sh/v3:                       capability mapping
golang.org/x/net:                     capability provider sandbox upstream
golang.org/x/sys:                     capability/hostfs sandbox guardrail store builtin cmd/capgate
golang.org/x/term:                    cmd/capgate
golang.org/x/text:                    capability capability/hostfs proxy skills tests
github.com/landlock-lsm/go-landlock:  sandbox
modernc.org/sqlite:                   store
github.com/jackc/pgx/v5:              store
unsafe:                               brief
go.opentelemetry.io/otel:             proxy cmd/capgate
github.com/prometheus/client_golang:  proxy cmd/capgate
github.com/coreos/go-oidc/v3:         proxy cmd/capgate
github.com/google/go-cmp:             tests
github.com/rogpeppe/go-internal:      tests
golang.org/x/tools/txtar:             tests
github.com/stretchr/testify:          nowhere
go.uber.org/mock:                     nowhere
gopkg.in/yaml.v3:                     nowhere
gopkg.in/yaml.v2:                     nowhere
`

// The sizes that code has when it is right. One that no longer fits asks for
// another design, not for a larger number and not for a file cut in two.
const (
	maxFileLines  = 500
	maxFuncLines  = 80 // of code that ships: the table of a test is data
	maxCyclomatic = 15
	maxParams     = 5
	maxExported   = 60 // types and functions of one package
	maxChain      = 6  // imports from the top to the bottom
)

// emptyWords say nothing about what a package or a file is for.
var emptyWords = []string{
	"util", "utils", "helper", "helpers", "common", "type", "types", "misc",
}

// forbidden is what no tracked text may hold: it is true of one machine only.
// The expressions are written so that they do not match themselves.
var forbidden = []struct {
	re  *regexp.Regexp
	why string
}{
	{
		regexp.MustCompile(`(^|[^\w~.*})/-])/(work|farm)/`),
		"names a path of one machine",
	},
	{
		regexp.MustCompile(`\.\./[s]hared\b`),
		"names a folder beside the checkout (say CAPGATE_CORPUS)",
	},
	{
		regexp.MustCompile(`(proxy|sum)\.golang\.[o]rg|registry\.(npmjs|yarnpkg)\.[a-z]+|deb\.[d]ebian\.org|(index|files)\.[p]ythonhosted\.org|[p]ypi\.org`),
		"names a package registry's host",
	},
}

// notOurs are names in the docs that look like paths of this repository and are
// not: files a user has, ids of agents, methods of the protocol.
var notOurs = regexp.MustCompile(`^(capgate\.yml|SKILL\.md|agents/(scout|lead|boss)(\.md)?|skills/(list|get))$`)

// law is one thing that holds everywhere. It reports each place where it does not.
type law struct {
	name  string
	check func(*tree) []breach
}

func laws() []law {
	return []law{
		{"imports", checkImports},
		{"chain", checkChain},
		{"homes", checkHomes},
		{"doc", checkPackageDoc},
		{"documented", checkDocumented},
		{"exported", checkExported},
		{"paths", checkPaths},
		{"text", checkText},
		{"names", checkNames},
		{"files", checkFiles},
		{"functions", checkFunctions},
		{"init", checkInit},
		{"globals", checkGlobals},
		{"context", checkContext},
	}
}

func TestArch(t *testing.T) {
	tr, err := loadTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range laws() {
		t.Run(l.name, func(t *testing.T) {
			for _, b := range l.check(tr) {
				t.Error(b)
			}
		})
	}
}

// TestTables proves that the policy itself reads as it is meant to.
func TestTables(t *testing.T) {
	rules := readTable(imports)
	for pkg, row := range rules {
		for _, name := range row {
			if _, ok := rules[name]; !ok && name != "nothing" && name != "everything" && name != "but" {
				t.Errorf("imports: %s: there is no package %q", pkg, name)
			}
		}
	}
	for mod, row := range readTable(homes) {
		for _, name := range row {
			if _, ok := rules[name]; !ok && name != "tests" && name != "nowhere" {
				t.Errorf("homes: %s: there is no package %q", mod, name)
			}
		}
	}
	if _, err := fs.Stat(os.DirFS("."), "go.mod"); err != nil {
		t.Errorf("the laws are checked from the root of the module: %v", err)
	}
}
