package proxy

import (
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// worded is a denial as it may be shown, whatever its words were made of: records, the agent's
// arguments, what a server said. Nothing else is rendered.
type worded denial

// word takes secrets out of all that is shown of a denial.
func (s *Server) word(d denial) worded {
	for _, text := range [...]*string{&d.need, &d.tool, &d.argument, &d.why, &d.hint, &d.detail} {
		*text = s.cleanText(*text)
	}
	d.tool = clip(d.tool)
	for i, h := range d.held {
		d.held[i] = s.cleanText(h)
	}
	return worded(d)
}

// maxNamed is how much of the name or the URI that was asked for is repeated, which may be of any length.
const maxNamed = 1024 // bytes

func clip(name string) string {
	if len(name) <= maxNamed {
		return name
	}
	return strings.ToValidUTF8(name[:maxNamed], "") + "…"
}

// opening is what every denial begins with.
func (d worded) opening() [3]string {
	return [...]string{"Denied by capgate (", string(d.code), "): "}
}

// text is what a model reads. Some clients show it nothing else.
func (d worded) text() string {
	opening := d.opening()
	return strings.Join(opening[:], "") + d.clause()
}

// clause is text without what everything that denies begins with.
func (d worded) clause() string {
	parts := d.parts()
	return strings.Join(parts[:], "")
}

func (d worded) parts() (all [11]string) {
	all[0], all[1] = d.why, "."
	for i, part := range [...]struct{ before, what, after string }{
		{" Argument: ", d.argument, "."}, {" To proceed, ", d.hint, "."}, {" [event ", d.event, "]"},
	} {
		if part.what != "" {
			all[2+3*i], all[3+3*i], all[4+3*i] = part.before, part.what, part.after
		}
	}
	return all
}

// body is the denial for programs.
func (d worded) body(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = wire.AppendString(dst, string(d.code))
	for _, f := range [...]struct{ name, value string }{
		{`,"need":`, d.need}, {`,"tool":`, d.tool}, {`,"argument":`, d.argument},
	} {
		if f.value != "" {
			dst = wire.AppendString(append(dst, f.name...), f.value)
		}
	}
	dst = append(dst, `,"held":[`...)
	for i, h := range d.held {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, h)
	}
	dst = append(dst, ']')
	if d.hint != "" {
		dst = wire.AppendString(append(dst, `,"hint":`...), d.hint)
	}
	if d.event != "" { // of what was done
		dst = wire.AppendString(append(dst, `,"event":`...), d.event)
	}
	return append(dst, '}')
}

const denialKey = `"capgate/denial":`

// result is the denial of a tools/call: a result that says it is an error. It is written where there
// is memory for it, if there is.
func (d worded) result(into *[]byte, modern bool) []byte {
	if into == nil {
		own := make([]byte, 0, 1<<10)
		into = &own
	}
	dst := append((*into)[:0], '{')
	if modern {
		dst = append(dst, complete+","...)
	}
	dst = append(dst, `"content":[{"type":"text","text":"`...)
	for _, part := range d.opening() {
		dst = wire.AppendText(dst, part)
	}
	for _, part := range d.parts() {
		dst = wire.AppendText(dst, part)
	}
	dst = append(dst, `"}],"isError":true,"_meta":{`+denialKey...)
	*into = append(d.body(dst), "}}"...)
	return *into
}

// failure is the denial of anything else, which no result could carry.
func (d worded) failure() *failure {
	code := codeDenied
	switch d.code {
	case capability.UnknownTool, capability.MalformedArguments, capability.MalformedRequest:
		code = codeParams
	case capability.UpstreamFailed: // as when it fails once it is called
		code = codeInternal
	}
	data := append([]byte(nil), `{`+denialKey...)
	return &failure{code: code, text: d.text(), data: append(d.body(data), '}')}
}
