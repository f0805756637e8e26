package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/agents"
)

// TestMatrix: of a server that did not answer for an agent nobody says that the agent is
// not shown its skills. What hides a skill from all is told of none that somebody sees.
func TestMatrix(t *testing.T) {
	of := func(id string, missing []string, rows ...skillRow) skillsOf {
		return skillsOf{agent: &agents.Agent{ID: id}, missing: missing, rows: rows}
	}
	greet := skillRow{Skill: "hub/greet", Upstream: "hub", ok: true}
	twice := skillRow{Skill: "x", Hidden: "several skills claim its place"}
	got := matrixOf([]skillsOf{
		of("a", nil, greet, twice),
		of("b", []string{"hub"}, skillRow{Skill: "x", ok: true}),
		of("c", nil, skillRow{Skill: "torn", Hidden: "torn"}),
	})
	want := []matrixRow{
		{Skill: "hub/greet", Upstream: "hub", Agents: map[string]bool{"a": true, "c": false}},
		{Skill: "torn", Hidden: "torn", Agents: map[string]bool{"a": false, "b": false, "c": false}},
		{Skill: "x", Agents: map[string]bool{"a": false, "b": true, "c": false}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
