package provider

import (
	"net/url"
	"slices"
	"strings"
)

// Vendor is an LLM provider: where its API is, how its requests are written, and
// which of its own tools can be given a scope. Its zero value is none.
type Vendor struct {
	Name string // as in /provider/<name>
	Base string // of the API: scheme, host and what stands before the version

	credential string // header that carries the key
	scheme     string // what stands before the key
	fault      faultForm
	routes     []route
	kit        kit
}

// Vendors returns all that are known, by name.
func Vendors() []Vendor {
	return []Vendor{
		{"anthropic", "https://api.anthropic.com", "X-Api-Key", "", anthropicFault, anthropicRoutes(), anthropicKit},
		{"gemini", "https://generativelanguage.googleapis.com", "X-Goog-Api-Key", "", googleFault, geminiRoutes(), geminiKit},
		{"mistral", "https://api.mistral.ai", "Authorization", "Bearer ", openFault, mistralRoutes(), mistralKit},
		{"openai", "https://api.openai.com", "Authorization", "Bearer ", openFault, openRoutes(), openKit},
		{"openrouter", "https://openrouter.ai/api", "Authorization", "Bearer ", openFault, routerRoutes(), routerKit},
		{"perplexity", "https://api.perplexity.ai", "Authorization", "Bearer ", openFault, perplexityRoutes(), perplexityKit},
		{"xai", "https://api.x.ai", "Authorization", "Bearer ", openFault, xaiRoutes(), xaiKit},
	}
}

// Names returns the names of all vendors, in order.
func Names() []string {
	var names []string
	for _, v := range Vendors() {
		names = append(names, v.Name)
	}
	return names
}

// Lookup finds a vendor by its name.
func Lookup(name string) (Vendor, bool) {
	all := Vendors()
	i := slices.IndexFunc(all, func(v Vendor) bool { return v.Name == name })
	if i < 0 {
		return Vendor{}, false
	}
	return all[i], true
}

// Credential returns the header that carries a key, and what stands in it.
func (v Vendor) Credential(key string) (header, value string) {
	return v.credential, v.scheme + key
}

// Widens reports whether tools of the vendor take hosts, and with each of them those
// beneath it.
func (v Vendor) Widens() bool { return v.kit != geminiKit && v.kit != mistralKit }

// Relayed reports whether it is not the vendor that answers at an address, but some other
// gateway. "" is the vendor's own, and so is what lies beneath its name, as eu.api.openai.com.
func (v Vendor) Relayed(address string) bool {
	at, err := url.Parse(address)
	own, _ := url.Parse(v.Base)
	return address != "" && (err != nil || !strings.HasSuffix("."+strings.ToLower(at.Hostname()), "."+own.Hostname()))
}

// BaseURL is what a client of the vendor is to be given, when the gateway serves it
// at an address: some clients add the version to it, others want it there.
func (v Vendor) BaseURL(gateway string) string {
	gateway = strings.TrimSuffix(gateway, "/") + "/provider/" + v.Name
	if v.kit == openKit || v.kit == routerKit || v.kit == xaiKit {
		return gateway + "/v1"
	}
	return gateway
}

// kit says which provider tools a vendor has.
type kit uint8

const (
	_ kit = iota
	anthropicKit
	geminiKit
	mistralKit
	openKit
	routerKit
	perplexityKit
	xaiKit
)
