package capability_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
)

// TestHostsOfChain: what every link allows, and nothing else.
func TestHostsOfChain(t *testing.T) {
	for name, test := range map[string]struct {
		links []string // hosts of net.get, a link each
		want  []string
	}{
		"one link":                       {[]string{"github.com,*.example.com"}, []string{"*.example.com", "github.com"}},
		"one within another":             {[]string{"*.github.com,api.github.com,github.com"}, []string{"*.github.com"}},
		"the narrower one":               {[]string{"*", "*.github.com", "api.github.com,gitlab.com"}, []string{"api.github.com"}},
		"apart":                          {[]string{"github.com", "gitlab.com"}, nil},
		"a link without any":             {[]string{"*", ""}, nil},
		"ports cross":                    {[]string{"*.github.com:443", "api.github.com"}, []string{"api.github.com:443"}},
		"ports apart":                    {[]string{"github.com:443", "github.com:80"}, nil},
		"any is not a special name":      {[]string{"*", "localhost,intranet.local,a.example"}, []string{"a.example"}},
		"any is not a special address":   {[]string{"*", "10.0.0.1,8.8.8.8"}, []string{"8.8.8.8"}},
		"a range that is not all public": {[]string{"*", "0.0.0.0/0"}, nil},
		"a range":                        {[]string{"10.0.0.0/8", "10.1.0.0/16"}, []string{"10.1.0.0/16"}},
		"a suffix of the text":           {[]string{"*.hub.com", "github.com"}, nil},
		"the apex of a suffix":           {[]string{"*.co.uk", "co.uk,a.co.uk"}, []string{"a.co.uk", "co.uk"}},
		"a label that is special":        {[]string{"*.com", "com,a.com"}, []string{"a.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, h := range chainOfHosts(t, test.links).Hosts("net.get") {
				got = append(got, h.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if hosts := (capability.Chain{}).Hosts("net.get"); hosts != nil {
		t.Errorf("the empty chain has %v", hosts)
	}
	if hosts := chainOfHosts(t, []string{"*"}).Hosts("fs.read"); hosts != nil {
		t.Errorf("fs.read has hosts %v", hosts)
	}
}

// TestHostsOfChainLimit: above the limit nothing is left.
func TestHostsOfChainLimit(t *testing.T) {
	var many []string
	for i := range 1025 {
		many = append(many, fmt.Sprintf("h%d.example.com", i))
	}
	if hosts := chainOfHosts(t, []string{strings.Join(many, ",")}).Hosts("net.get"); hosts != nil {
		t.Errorf("%d hosts are left", len(hosts))
	}
	if hosts := chainOfHosts(t, []string{strings.Join(many[1:], ",")}).Hosts("net.get"); len(hosts) != 1024 {
		t.Errorf("%d hosts are left, want 1024", len(hosts))
	}
}

// TestHostsOfChainLaw: a target is within the hosts exactly when every link allows
// it.
func TestHostsOfChainLaw(t *testing.T) {
	hosts := []string{
		"*", "*:443", "*.a.com", "a.com", "b.a.com", "*.b.a.com", "*.b.a.com:443", "c.b.a.com:80", "*.com", "com",
		"ba.com", "localhost", "10.0.0.0/8", "10.0.0.1", "8.8.8.8", "8.8.8.8:443", "[::1]",
	}
	targets := []string{"a.com", "x.a.com", "b.a.com", "x.b.a.com", "c.b.a.com", "ba.com", "com", "x.com", "localhost", "10.0.0.1", "10.9.9.9", "8.8.8.8", "9.9.9.9", "[::1]"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		links := make([]string, 1+r.IntN(3))
		for i := range links {
			var some []string
			for range 1 + r.IntN(4) {
				some = append(some, hosts[r.IntN(len(hosts))])
			}
			links[i] = strings.Join(some, ",")
		}
		chain := chainOfHosts(t, links)
		var met []string
		for _, h := range chain.Hosts("net.get") {
			met = append(met, h.String())
		}
		inside := chainOfHosts(t, []string{strings.Join(met, ",")})
		for _, target := range targets {
			for _, port := range []string{"", ":443", ":80"} {
				need := need(t, "net.get{host='"+target+port+"'}")
				if got, want := inside.Decide(need).Allowed(), chain.Decide(need).Allowed(); got != want {
					t.Fatalf("%q meet in %q: %s%s is %v, want %v", links, met, target, port, got, want)
				}
			}
		}
	}
}

// chainOfHosts makes a chain of grants of net.get.
func chainOfHosts(t *testing.T, links []string) capability.Chain {
	t.Helper()
	var chain capability.Chain
	for _, hosts := range links {
		spec := capability.Spec{Verb: "net.get"}.With("hosts", strings.Split(hosts, ",")...)
		set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		chain = append(chain, capability.Link{Set: set})
	}
	return chain
}

// TestHostAbout: what a host is about, for whoever writes it in other words.
func TestHostAbout(t *testing.T) {
	for text, want := range map[string]string{
		"*":                   "true  false 0 true",
		"*.example.com:443":   "false example.com true 443 true",
		"localhost":           "false localhost false 0 false",
		"8.8.8.8":             "false  false 0 true",
		"10.0.0.0/8":          "false  false 0 false",
		"8.0.0.0/5":           "false  false 0 false", // holds 10.0.0.0/8
		"api.example.com:443": "false api.example.com false 443 true",
	} {
		h, err := capability.ParseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		name, tree := h.Name()
		if got := fmt.Sprint(h.Any(), " ", name, " ", tree, " ", h.Port(), " ", h.Public()); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if zero := (capability.Host{}); zero.Any() || zero.Public() {
		t.Error("the zero host is public")
	}
}

// TestHostsOfMany: more hosts than are compared, in several grants, leave nothing,
// whichever link has them.
func TestHostsOfMany(t *testing.T) {
	var grants []string
	for i := range 2 {
		var list []string
		for j := range 600 {
			list = append(list, fmt.Sprintf("h%d-%d.example.com", i, j))
		}
		grants = append(grants, "net.get{hosts=["+strings.Join(list, ",")+"]}")
	}
	many := capability.Link{Set: compile(t, grants...)}
	few := capability.Link{Set: compile(t, "net.get{hosts=[*.example.com]}")}
	for _, chain := range []capability.Chain{{many}, {many, few}, {few, many}} {
		if hosts := chain.Hosts("net.get"); len(hosts) > 0 {
			t.Errorf("%d hosts are left", len(hosts))
		}
	}
}

// TestHostsOfChainCost: hosts are not held against each other, each against all.
func TestHostsOfChainCost(t *testing.T) {
	chain := func(n int) capability.Chain {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("*.h%d.example.com", i)
		}
		text := strings.Join(names, ",")
		return chainOfHosts(t, []string{text, text})
	}
	cost := func(c capability.Chain, n int) time.Duration {
		start := time.Now()
		if hosts := c.Hosts("net.get"); len(hosts) != n {
			t.Fatal(len(hosts))
		}
		return time.Since(start)
	}
	few, many := chain(64), chain(1024)
	bestOfFew, bestOfMany := time.Hour, time.Hour
	for range 40 { // somebody else may be busy here
		bestOfFew, bestOfMany = min(bestOfFew, cost(few, 64)), min(bestOfMany, cost(many, 1024))
	}
	if bestOfMany > 60*bestOfFew {
		t.Errorf("%v for 64 hosts, %v for 1024", bestOfFew, bestOfMany)
	}
}
