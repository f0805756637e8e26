package provider

import (
	"net/http"
	"net/url"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// address judges a text that the provider may take for an address and fetch. What
// it carries itself is no address.
func (r *request) address(v wire.Value) bool {
	text, ok := v.Str()
	switch {
	case v.Kind() == wire.Null:
		return true
	case !ok:
		r.refuse("an address should be text")
		return true
	case len(text) >= len("data:") && strings.EqualFold(text[:len("data:")], "data:"):
		return true
	}
	if at, err := url.Parse(text); err == nil && isStore(at) { // whoever's request it stands in
		r.stored(v)
	}
	target, err := capability.ParseURL(text)
	if err != nil {
		r.refuse("an address " + err.Error())
		return true
	}
	need := capability.Net(get, target)
	if d := r.policy.require(need); !d.Allowed() {
		r.deny(http.StatusForbidden, d.Code, "the provider would fetch what the request names: this needs "+need.String())
	}
	r.rests(get, need.Canonical())
	return true
}

// fileData judges the data of a file, in whose place some take an address.
func (r *request) fileData(v wire.Value) bool {
	if text, ok := v.Str(); v.Kind() != wire.Invalid && v.Kind() != wire.Null && (!ok || strings.Contains(text, ":")) { // which base64 never holds
		return r.address(v)
	}
	return true
}

// isBare reports whether a file is base64 without "data:" in front, as Perplexity takes it where an
// address may stand. What begins with // could be one, of a number.
func isBare(v wire.Value) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	if v.Kind() == wire.Object && stranger(v, "url") == "" {
		v, _ = v.Get("url")
	}
	text, _ := v.Str()
	data := strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	return data != "" && len(text)%4 == 0 && strings.Trim(data, letters) == "" && !strings.HasPrefix(data, "//")
}

// stored judges the id of a file at the provider, where those of all agents are.
func (r *request) stored(v wire.Value) bool {
	if v.Kind() == wire.Null {
		return true
	}
	if code, why := r.needs(files); why != "" {
		r.deny(http.StatusForbidden, code, "a file that is stored at the provider: "+why)
	}
	return true
}

// inputs judges the addresses, files and models in a tool that is not looked at
// otherwise. Tools in it would be offered by nobody.
func (r *request) inputs(v wire.Value) {
	switch v.Kind() {
	case wire.String:
		if text, _ := v.Str(); isWeb(text) {
			r.address(v)
		}
	case wire.Array:
		for element := range v.Elems() {
			r.inputs(element)
		}
	case wire.Object:
		for key, member := range v.Members() {
			name, _ := key.Str()
			r.inputMember(name, member)
		}
	}
}

// looked is the rule of settings whose addresses, files and models are judged.
func (r *request) looked(v wire.Value) bool {
	r.inputs(v)
	return true
}

func (r *request) inputMember(name string, v wire.Value) {
	switch fold(name) {
	case "url", "imageurl", "fileurl", "uri", "fileuri", "audiourl", "videourl", "documenturl":
		if v.Kind() == wire.String {
			r.address(v)
			return
		}
	case "fileid", "fileids":
		r.stored(v)
	case "voice", "voicename":
		r.speaker(v)
	case "gcsuri", "outputuriprefix":
		r.refusedUnlessNull("a provider stores nothing where an agent says")(v)
	case "model", "modelname":
		r.modelMember(v)
	case "models":
		r.elements(v, r.modelMember)
	case "filters", "text":
		return // what is compared or read out, not fetched
	case "tools", "plugins", "mcpservers", "serverurl", "connectorid", "tunnelid", "definition", "networkpolicy":
		r.forbid(`"` + clip(name) + `" does not belong in a tool`)
	}
	r.inputs(v)
}
