package builtin

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/upstream"
	"capgate/wire"
)

// answerHeaders are the headers of an answer that are shown.
func answerHeaders() []string {
	return []string{
		"Content-Type", "Content-Encoding", "Content-Language", "Content-Length", "Last-Modified", "ETag",
		"Cache-Control", "Expires", "Location", "Retry-After",
	}
}

// unknownBytes is what a body is that is not, or not all, what it says it is.
const unknownBytes = "application/octet-stream"

// show makes a result of an answer.
func show(from string, answer *http.Response, most int, m *memory) (result, error) {
	data, err := m.read(answer.Body, nil, most)
	switch {
	case errors.Is(err, upstream.ErrNoRoom):
		return result{}, err
	case err != nil:
		return result{}, problem("the answer broke off")
	}
	cut := len(data) > most
	data = data[:min(len(data), most)]
	r := result{memory: m}
	r.structured = r.head(from, answer, cut)
	if len(data) == 0 {
		return r, nil
	}
	kind, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		kind, parameters = sniff(data), nil
	}
	if encoded := answer.Header.Get("Content-Encoding"); encoded == "" || strings.EqualFold(encoded, "identity") {
		if text, ok := decode(data, kind, parameters["charset"], cut, m); ok {
			err := m.take(len(text))
			if err == nil {
				r.text(string(text))
			}
			return r, err
		}
	} else {
		kind = unknownBytes // it is never unpacked, so that it is not what it says
	}
	if isPicture(kind) && (cut || sniff(data) != kind) {
		kind = unknownBytes
	}
	r.blob(from, kind, data)
	return r, nil
}

// head adds the status and the headers of an answer, and returns the same for
// programs.
func (r *result) head(from string, answer *http.Response, cut bool) []byte {
	var lines strings.Builder
	fmt.Fprintf(&lines, "%d %s %s\n", answer.StatusCode, http.StatusText(answer.StatusCode), from)
	out := wire.AppendString([]byte(`{"url":`), from)
	out = strconv.AppendInt(append(out, `,"status":`...), int64(answer.StatusCode), 10)
	out = append(out, `,"headers":{`...)
	first := true
	for _, name := range answerHeaders() {
		value := strings.Map(printable, answer.Header.Get(name))
		if value == "" {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = wire.AppendString(append(wire.AppendString(out, name), ':'), value)
		fmt.Fprintf(&lines, "%s: %s\n", name, value)
	}
	out = strconv.AppendBool(append(out, `},"truncated":`...), cut)
	if cut {
		lines.WriteString("[the body is cut off]\n")
	}
	r.text(lines.String())
	return append(out, '}')
}

// printable leaves out what could move the cursor of whoever reads it.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// decode returns a body as text, if it is text in an encoding that is read here.
func decode(data []byte, kind, charset string, cut bool, m *memory) ([]byte, bool) {
	if !isTextual(kind) {
		return nil, false
	}
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8", "us-ascii":
		if cut {
			data = whole(data)
		}
	case "iso-8859-1", "latin1":
		wide, err := m.grow(nil, 2*len(data))
		if err != nil {
			return nil, false // and the call fails
		}
		for _, b := range data {
			wide = utf8.AppendRune(wide, rune(b))
		}
		data = wide
	default:
		return nil, false
	}
	return data, isText(data)
}

func isTextual(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript",
		"application/x-www-form-urlencoded", "application/yaml", "application/toml", "application/x-ndjson":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
