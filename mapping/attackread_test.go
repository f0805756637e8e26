package mapping_test

import (
	"encoding/json"
	"errors"
	"strings"

	"capgate/mapping"
)

// prompt decides a prompts/get. A prompt whose arguments are bound has a mapping.
func (s *site) prompt(a attack) (string, error) {
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	var params struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(a.Args, &params); err != nil {
		return "", err
	}
	roles := map[string]string{}
	for name, kind := range a.Hint.Bind {
		roles[strings.TrimPrefix(name, "arguments.")] = roleOf(kind, a.Hint.Requires).(string)
	}
	prompts := map[string]any{}
	if len(roles) > 0 {
		prompts[params.Name] = roles
	}
	text, err := json.Marshal(map[string]any{"server": a.Hint.Server, "tools": map[string]any{}, "prompts": prompts})
	if err != nil {
		return "", err
	}
	m, _, err := mapping.Parse(a.ID, text)
	if err != nil {
		return "", err
	}
	args := []byte(params.Arguments)
	if args == nil {
		args = []byte("{}")
	}
	call := mapping.Call{Name: a.Hint.Server + "." + params.Name, View: s.view(a.Hint.Cwd)}
	return s.ask(set, m.Prompt(params.Name), call, args), nil
}

// resource decides a resources/read of a server without a mapping.
func (s *site) resource(a attack) (string, error) {
	set, _, err := s.set(a)
	if err != nil {
		return "", err
	}
	var params struct{ URI string }
	if err := json.Unmarshal(a.Args, &params); err != nil {
		return "", err
	}
	var m *mapping.Mapping
	needs, err := m.Resource("", params.URI, s.view(a.Hint.Cwd))
	if refused := (*mapping.Refused)(nil); errors.As(err, &refused) {
		return string(refused.Code), nil
	}
	return s.answer(set, needs), nil
}
