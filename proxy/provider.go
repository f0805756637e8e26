package proxy

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"capgate/provider"
)

// Provider is a model's vendor that agents reach through the gateway, at
// /provider/ and its name.
type Provider struct {
	Vendor provider.Vendor
	Agents []string        // those that may use it; nil: all of them
	URL    string          // what the paths of its API hang from
	Rules  provider.Policy // what holds for every agent; the authority is that of the one who asks
	Start  time.Duration   // for an answer to begin
	Idle   time.Duration   // for an answer to go on

	// Key returns what the vendor wants to see. It is asked for each request, so
	// that a key that was renewed is used at once.
	Key func() (string, error)
}

// providerPath begins the paths of providers.
const providerPath = "/provider/"

// isFor reports whether an agent may use the provider.
func (p *Provider) isFor(agent string) bool {
	return p.Agents == nil || slices.Contains(p.Agents, agent)
}

// provider finds a provider by its name.
func (p *Policy) provider(name string) *Provider {
	for _, one := range p.Providers {
		if one.Vendor.Name == name {
			return one
		}
	}
	return nil
}

// destination takes the path of a request apart: the name of a provider, and the
// path within its API. It is read as it is written, so that nothing behind the
// gateway takes it for another one.
func destination(r *http.Request) (name, path string, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), providerPath)
	if !ok {
		return "", "", false
	}
	name, path, _ = strings.Cut(rest, "/")
	return name, "/" + path, true
}

// isExact reports whether a path reads alike everywhere.
func isExact(path string) bool {
	if strings.ContainsAny(path, "%\\;") || strings.Contains(path, "//") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
