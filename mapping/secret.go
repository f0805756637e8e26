package mapping

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// handleOpen and handleClose stand around the name of a secret in a text.
const (
	handleOpen  = "{{secret:"
	handleClose = "}}"
)

// secret is text in which handles of secrets are honoured.
type secret struct{}

func (secret) read(r *reading, at place) error {
	text, err := at.text()
	if err != nil {
		return err
	}
	r.secrets = append(r.secrets, at.value)
	for {
		_, rest, ok := strings.Cut(text, handleOpen)
		if !ok {
			return nil
		}
		name, after, ok := strings.Cut(rest, handleClose)
		if !ok || !isSecretName(name) {
			return malformed(at.name, "holds a handle that is not %sname%s", handleOpen, handleClose)
		}
		q, err := capability.Keyed("secret.use", capability.Word{Dim: "name", Value: name})
		if err := r.need(at, q, err); err != nil {
			return err
		}
		r.needs[len(r.needs)-1].Handle = true
		text = after
	}
}

func (secret) verbs() []capability.Verb { return []capability.Verb{"secret.use"} }
func (secret) derives() bool            { return false }

func isSecretName(name string) bool {
	const longest, letters = 128, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return name != "" && len(name) <= longest && strings.Trim(name, letters) == ""
}

// strayHandles refuses a handle in any text of the call but those in which it is
// honoured. A handle that goes through as it is would come to no harm, but who
// wrote it takes it for one that is filled in.
func (r *reading) strayHandles() error {
	where, found := r.stray(r.Args)
	if !found {
		return nil
	}
	return refuse(capability.ScopeViolation, strings.TrimPrefix(where, "."), "holds the handle of a secret, and no secret is filled in there")
}

// stray finds a handle that is not honoured. Where it stands is put together on
// the way back, since nearly every call has none.
func (r *reading) stray(v wire.Value) (where string, found bool) {
	if !mayHoldHandle(v) {
		return "", false
	}
	if text, ok := v.Str(); ok {
		return "", strings.Contains(text, handleOpen) && !slices.Contains(r.secrets, v)
	}
	for key, member := range v.Members() {
		text, _ := key.Str()
		inKey := strings.Contains(text, handleOpen)
		if where, found = r.stray(member); found || inKey {
			return "." + printable(text) + where, true
		}
	}
	i := 0
	for elem := range v.Elems() {
		if where, found = r.stray(elem); found {
			return "[" + strconv.Itoa(i) + "]" + where, true
		}
		i++
	}
	return "", false
}

// mayHoldHandle reports whether the bytes of a value could hold a handle: as it
// is, or hidden by an escape.
func mayHoldHandle(v wire.Value) bool {
	raw := v.Raw()
	return bytes.Contains(raw, []byte(handleOpen)) || v.Numbered() && bytes.Contains(raw, []byte(`\u`))
}
