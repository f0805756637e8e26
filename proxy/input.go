package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"capgate/capability"
	"capgate/gate"
	"capgate/upstream"
	"capgate/wire"
)

// inputs is what a server of the modern era asks for before it can answer.
type inputs struct {
	requests wire.Value
	state    wire.Value
}

func readInputs(answer *upstream.Answer) (inputs, error) {
	var doc wire.Doc
	if err := doc.Parse(answer.Result, wire.Limits{}); err != nil {
		return inputs{}, err
	}
	var in inputs
	in.requests, _ = doc.Root().Get("inputRequests")
	in.state, _ = doc.Root().Get("requestState")
	if k := in.requests.Kind(); k != wire.Object && k != wire.Invalid && k != wire.Null {
		return in, errors.New("the input that the server asks for cannot be read")
	}
	if k := in.state.Kind(); k != wire.String && k != wire.Invalid && k != wire.Null {
		return in, errors.New("the state that the server gives cannot be read")
	}
	return in, nil
}

// supply gets what a server asks for. A client of the legacy era is asked on the
// spot; one of the modern era gets the request as its answer, with our seal on
// it, and comes back with what was asked: then the answer is done.
func (c *call) supply(ctx context.Context, o *order, answer *upstream.Answer) (done bool, err error) {
	in, err := readInputs(answer)
	if err != nil {
		return false, &upstream.Failed{Upstream: o.line.up().Name, Text: "asked for input that cannot be read", Err: err}
	}
	responses := []byte(`"inputResponses":{`)
	open := 0
	for key, value := range in.requests.Members() {
		method, _ := value.Get("method")
		name, _ := method.Str()
		params, _ := value.Get("params")
		if disguised(value, "method", "params") {
			return false, c.refuseInput(o.line.unasked(name, "the server asked in a way that is not known"))
		}
		if err := c.server.mayAsk(o.line, c.client, name, params); err != nil {
			return false, c.refuseInput(err)
		}
		var got []byte
		switch {
		case c.modern && (name != askRoots || c.hearsOfRoots(o)):
			open++
			continue
		case name == askRoots:
			got = c.rootsFor(o.line)
		default:
			if got, err = c.askClient(ctx, o.line.up(), name, params.Raw()); err != nil {
				return false, err
			}
		}
		responses = appendMember(responses, key.Raw(), got)
	}
	responses = append(responses, '}')
	if open > 0 {
		return true, c.passInput(o, answer, in)
	}
	if in.state.Kind() == wire.String {
		responses = append(append(responses, `,"requestState":`...), in.state.Raw()...)
	}
	if in.requests.Len() == 0 {
		responses = bytes.TrimPrefix(responses, []byte(`"inputResponses":{},`))
	}
	o.again = responses
	return false, nil
}

// appendMember adds a member, as it is written, to an object that is not closed yet.
func appendMember(dst, key, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(append(dst, key...), ':'), value...)
}

func (c *call) refuseInput(err error) error {
	return &refused{gate.Verdict{Decision: capability.Denial(capability.CapabilityAbsent, nil), Why: err.Error()}}
}

// askClient asks a client of the legacy era what a modern server wants to know.
// There is no way to hand on a client's refusal, except that a question to a
// person can be called off.
func (c *call) askClient(ctx context.Context, from *Upstream, method string, params []byte) ([]byte, error) {
	if c.session == nil {
		return nil, c.refuseInput(errors.New("the client cannot be asked during this request"))
	}
	got, err := answerOf(c.session.ask(ctx, c.out, method, c.scrubbed(from, params)))
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // and the server has nothing to do with it
		return nil, ctx.Err()
	case err != nil && method == askElicitation && ctx.Err() == nil:
		return []byte(`{"action":"cancel"}`), nil
	case err != nil:
		return nil, &upstream.Failed{Upstream: c.behind, Text: "asked for input that the client did not give", Err: err}
	}
	return got, nil
}

// passInput seals the state of a server into the answer of an agent, together
// with the keys of what we answer ourselves when the agent comes back.
func (c *call) passInput(o *order, answer *upstream.Answer, in inputs) error {
	var own, others []byte
	shown := []byte("{")
	for key, value := range in.requests.Members() {
		if method, _ := value.Get("method"); method.Equal(askRoots) {
			own = append(append(own, key.Raw()...), ',')
			if !c.hearsOfRoots(o) {
				continue
			}
		} else {
			others = append(append(others, key.Raw()...), ',')
		}
		shown = appendMember(shown, key.Raw(), value.Raw())
	}
	text := `{"own":[` + strings.TrimSuffix(string(own), ",") + `],"asked":[` + strings.TrimSuffix(string(others), ",") + `]`
	if in.state.Kind() == wire.String {
		text += `,"state":` + string(in.state.Raw())
	}
	sealed, err := c.server.seal.close(c.bond("input"), []byte(text+"}"))
	if err != nil {
		return &upstream.Failed{Upstream: o.line.up().Name, Text: "asked for input with a state that cannot be kept", Err: err}
	}
	answer.Result = []byte(`{"resultType":"input_required","inputRequests":` + string(c.scrubbed(o.line.up(), append(shown, '}'))) + `,"requestState":"` + sealed + `"}`)
	return nil
}

// hearsOfRoots reports whether the client is told that a server asks for roots. It
// may answer as the protocol has it; what goes up is what the gateway says of them.
func (c *call) hearsOfRoots(o *order) bool {
	v, ok := c.client.Get("roots")
	return ok && v.Kind() == wire.Object && o.line.tenant.agent != ""
}

// bond is what the state of this call is bound to: the agent, what it called and at
// which server, as that is reached and may ask, and the very arguments.
func (c *call) bond(purpose string) bond {
	server := c.behind
	if u := c.policy.upstream(server); u != nil {
		server += " " + u.Identity
	}
	return bond{purpose: purpose, agent: c.agent, about: c.method + " " + server + " " + c.exposed, digest: sha256.Sum256(c.args.Raw())}
}

// resume reads the state that an agent brings back into an order, and refuses
// one that it was not given for exactly this.
func (c *call) resume(o *order) error {
	state, hasState := c.params.Get("requestState")
	given, hasInput := c.params.Get("inputResponses")
	if !hasState {
		o.again = c.unasked(o.line.up(), given)
		return nil
	}
	text, ok := state.Str()
	if !ok || hasInput && given.Kind() != wire.Object {
		return errSeal
	}
	plain, err := c.server.seal.open(c.bond("input"), text)
	if err != nil {
		return err
	}
	var doc wire.Doc
	if err := doc.Parse(plain, wire.Limits{}); err != nil {
		return err
	}
	own, _ := doc.Root().Get("own")
	responses := []byte(`"inputResponses":{`)
	for key := range own.Elems() {
		responses = appendMember(responses, key.Raw(), c.rootsFor(o.line))
	}
	asked, _ := doc.Root().Get("asked")
	for key, value := range given.Members() {
		if holds(asked, key) {
			responses = appendMember(responses, key.Raw(), value.Raw())
		}
	}
	o.again = append(responses, '}')
	if v, ok := doc.Root().Get("state"); ok {
		o.again = append(append(o.again, `,"requestState":`...), v.Raw()...)
	}
	return nil
}

// isBack reports whether the agent comes back with what was asked, so that the call has been up.
func (c *call) isBack() bool {
	_, ok := c.params.Get("requestState")
	return ok
}

// hasFolded reports whether an object has a member that some reader takes for the
// one of the name.
func hasFolded(object wire.Value, name string) bool {
	for key := range object.Members() {
		if text, _ := key.Str(); strings.EqualFold(text, name) {
			return true
		}
	}
	return false
}

// holds reports whether a list of texts holds one.
func holds(list, key wire.Value) bool {
	text, _ := key.Str()
	for v := range list.Elems() {
		if v.Equal(text) {
			return true
		}
	}
	return false
}

// unasked is what goes up of answers to questions that were not put in this call.
// A client may know beforehand what it will be asked, if it may be asked that. What directories
// it works in is not for it to say.
func (c *call) unasked(u *Upstream, given wire.Value) []byte {
	dst := []byte(`"inputResponses":{`)
	for key, value := range given.Members() {
		if value.Kind() == wire.Object && !hasFolded(value, "roots") && c.couldBeAsked(u, value) {
			dst = appendMember(dst, key.Raw(), value.Raw())
		}
	}
	if dst[len(dst)-1] == '{' {
		return nil
	}
	return append(dst, '}')
}

// couldBeAsked reports whether a server may ask, and the client be asked, all that some answer
// may be one to.
func (c *call) couldBeAsked(u *Upstream, answer wire.Value) bool {
	elicited := hasFolded(answer, "action")
	sampled := hasFolded(answer, "role") || hasFolded(answer, "model")
	return (elicited || sampled) &&
		(!elicited || u.mayAsk("elicitation") && has(c.client, "elicitation")) &&
		(!sampled || u.mayAsk("sampling") && has(c.client, "sampling"))
}
