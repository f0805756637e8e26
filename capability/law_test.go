package capability_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"capgate/capability"
)

// The words from which the attenuation law is tried: few, so that grants overlap.
var (
	lawHosts = []string{"*", "*.a.com", "a.com", "b.a.com", "*.b.a.com", "a.com:443", "*.com", "8.8.8.8", "8.8.0.0/16", "10.0.0.0/8", "10.1.0.0/16", "[::1]"}
	lawURLs  = []string{"https://a.com/", "https://b.a.com/", "https://c.b.a.com/", "https://a.com:8443/", "https://x.com/", "http://8.8.8.8/", "http://8.8.4.4/", "http://10.1.2.3/", "http://10.2.2.3/", "http://[::1]/", "https://evil.example/"}
	lawPaths = []string{"a", "b", "a/b", "*", "**", "a/*", "a/**", "**/b", "*.go", "{a,b}", "{a,b}/c", "[ab]", "a?", "a*b", "."}
	lawFiles = []string{".", "a", "b", "c", "a/b", "a/b/c", "b/c", "x.go", "a/x.go", "ab", "aab", "a/a/b"}
	lawArgvs = []string{"git status", "git *", "git **", "rg **", "rg -n *", "rg x", "make {a,b}", "git -c x", "git --x y", "git -c x status"}
	lawCmds  = []string{"git", "rg", "make", "ls"}
	lawCalls = []string{"git,status", "git,log", "git,-c,x", "git,-c,x,status", "git", "rg,x", "rg,-n,x", "rg,--pre,x", "make,a", "make,c", "ls", "git,status,x"}
	lawNames = []string{"*", "a.*", "a.b", "b.*", "{a,b}.c", "a?b", "**"}
	lawTools = []string{"a.b", "a.c", "b.c", "b.x", "a-b", "c"}
	lawArgs  = []string{"", ",args={o=[x]}", ",args={o=[x,y]}", ",args={o=[*]}", ",args={o=[x],p=[y]}", ",args={p=[*]}"}
	lawGiven = []string{"", ",args={o=x}", ",args={o=y}", ",args={o=x,p=y}", ",args={o=z,p=z}"}
	lawVerbs = []string{"net", "fs", "exec", "eval", "tool", "records", "agent", "rye", "knowledge", "resource"}
	lawItems = []string{"s.*", "*", "s.a.*", "s.a.b", "*.a.b", "s.?.b", "t.a.*", "s"}
	lawURIs  = []string{"*", "a://*", "a://b", "{a,b}:*", "a://b.c", "a://*c", "a://b?x", "a://b\\\\?*", "a://b*", "{a,b}://b*", "a://b*/c", "a://b*x*", "*b*"}
	lawReads = []string{"a://b", "a://c", "b://b", "a:b", "a://b/c", "a://b.c", "a://b/", "a://b?c", "a://b#c", "a://b?x", "a://bxx", "a://bxc", "a://b@c", "a://b/c@c", "b://b@b", "a://b/@/c"}
	lawDirs  = []string{"/w", "/w/a", "/w/a/b", "/", "/x"}
)

func pick(r *rand.Rand, words []string) string { return words[r.IntN(len(words))] }

func picks(r *rand.Rand, words []string) string {
	list := []string{pick(r, words)}
	if r.IntN(2) == 0 {
		list = append(list, pick(r, words))
	}
	for i := range list {
		list[i] = `"` + list[i] + `"`
	}
	return "[" + strings.Join(list, ",") + "]"
}

func lawGrant(r *rand.Rand) string {
	switch pick(r, lawVerbs) {
	case "net":
		return "net.get{hosts=" + picks(r, lawHosts) + "}"
	case "fs":
		return "fs.read{in=" + pick(r, lawDirs) + ",paths=" + picks(r, lawPaths) + "}"
	case "exec":
		return "proc.exec{in=" + pick(r, lawDirs) + "," + pick(r, []string{"cmds=" + picks(r, lawCmds), "patterns=" + picks(r, lawArgvs)}) + "}"
	case "eval":
		return "proc.eval{in=" + pick(r, lawDirs) + "}"
	case "tool":
		return "tool.invoke{tools=" + picks(r, lawNames) + pick(r, lawArgs) + "}"
	case "records":
		return pick(r, []string{"records.update", "records.update{classes=" + picks(r, lawNames) + "}", "records.update{paths=" + picks(r, lawPaths[:8]) + "}"})
	case "agent":
		return "agent.grant{id=" + picks(r, []string{"a", "a*", "*", "agents/b"}) + "}"
	case "knowledge":
		return "rye.load.knowledge{ids=" + picks(r, lawItems) + "}"
	case "resource":
		return "resource.read{uris=" + picks(r, lawURIs) + "}"
	}
	return "rye.execute.tool{ids=" + picks(r, []string{"a.*", "*", "a.b", "*.b", "a.?"}) + "}"
}

func lawRequirement(r *rand.Rand) string {
	switch pick(r, lawVerbs) {
	case "net":
		return "net.get{url=\"" + pick(r, lawURLs) + "\"}"
	case "fs":
		return "fs.read{path=" + pick(r, lawFiles) + "}"
	case "exec":
		return "proc.exec{argv=[" + pick(r, lawCalls) + "],cwd=" + pick(r, lawDirs) + "}"
	case "eval":
		return "proc.eval{command=ls,cwd=" + pick(r, lawDirs) + "}"
	case "tool":
		return "tool.invoke{tool=" + pick(r, lawTools) + pick(r, lawGiven) + "}"
	case "records":
		return pick(r, []string{"records.update{class=" + pick(r, lawTools) + "}", "records.update{path=" + pick(r, lawFiles[1:]) + "}", "records.update{class=a.b,path=" + pick(r, lawFiles[1:]) + "}"})
	case "agent":
		return "agent.grant{id=" + pick(r, []string{"a", "ab", "b"}) + "}"
	case "knowledge":
		return "rye.load.knowledge{id=" + pick(r, []string{"s/a/b", "s/b", "t/a/b", "s"}) + "}"
	case "resource":
		return "resource.read{uri=\"" + pick(r, lawReads) + "\"" + pick(r, []string{"", ",server=s", ",server=s", ",server=t"}) + "}"
	}
	return "rye.execute.tool{id=" + pick(r, []string{"a/b", "a/b/c", "b", "c/b"}) + "}"
}

// lawSets compiles two sets of random grants; in a third of the cases the one is
// part of the other, as in real delegation.
func lawSets(t testing.TB, r *rand.Rand) (giver, child *capability.Set) {
	var g, c []string
	for range 1 + r.IntN(4) {
		g = append(g, lawGrant(r))
	}
	for range 1 + r.IntN(2) {
		if r.IntN(3) == 0 {
			c = append(c, pick(r, g))
		} else {
			c = append(c, lawGrant(r))
		}
	}
	return compileAnywhere(t, g), compileAnywhere(t, c)
}

func compileAnywhere(t testing.TB, texts []string) *capability.Set {
	t.Helper()
	var specs []capability.Spec
	for _, text := range texts {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		specs = append(specs, s)
	}
	set, findings := capability.Compile(specs, capability.Options{})
	for _, f := range findings {
		if f.Code != "clamped" {
			t.Fatalf("%v: %s", texts, f)
		}
	}
	return set
}

// checkLaw is the law of attenuation: what a covered set allows, the covering
// one allows. And its converse where a witness is a thing that can be asked for.
func checkLaw(t testing.TB, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	giver, child := lawSets(t, r)
	covered := len(giver.Covers(child)) == 0
	for range 40 {
		text := lawRequirement(r)
		q := need(t, text)
		if covered && child.Decide(q).Allowed() && !giver.Decide(q).Allowed() {
			t.Fatalf("seed %d: %v covers %v, but %s is allowed only by the latter", seed, describe(giver), describe(child), text)
		}
	}
	if len(child.Covers(child)) > 0 {
		t.Fatalf("seed %d: %v does not cover itself: %v", seed, describe(child), child.Covers(child))
	}
	for _, gap := range giver.Covers(child) {
		checkWitness(t, seed, giver, child, gap)
	}
}

// checkWitness asks both sets for the witness of a gap.
func checkWitness(t testing.TB, seed uint64, giver, child *capability.Set, gap capability.Gap) {
	t.Helper()
	var text string
	switch gap.Grant.Verb() {
	case "net.get":
		text = fmt.Sprintf("net.get{host=%q}", gap.Witness)
	case "fs.read":
		text = fmt.Sprintf("fs.read{path=%q}", gap.Witness)
	default:
		return
	}
	if strings.HasPrefix(gap.Witness, "any ") {
		return
	}
	q := need(t, text)
	if q.Opaque() == "" && (!child.Decide(q).Allowed() || giver.Decide(q).Allowed()) {
		t.Fatalf("seed %d: %v does not cover %v, but the witness %s does not show it: %s / %s", seed, describe(giver), describe(child), gap.Witness, child.Decide(q), giver.Decide(q))
	}
}

func TestAttenuationLaw(t *testing.T) {
	for seed := range uint64(3000) {
		checkLaw(t, seed)
	}
}

func FuzzAttenuationLaw(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkLaw(t, seed) })
}
