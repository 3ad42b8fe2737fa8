package component

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

func TestFlow_EachAgentHasOnePolicy(t *testing.T) {
	arena := &hostabi.EnvSpec{Name: "arena@1", Groups: []hostabi.Group{{Name: "red", Agents: 2}, {Agents: 1}}}
	duel := &hostabi.EnvSpec{Name: "duel@1"}
	if got := AgentNames(arena); !slices.Equal(got, []string{"red/0", "red/1", "agent/0"}) {
		t.Fatalf("agents %v", got)
	}
	for _, c := range []struct {
		spec     *hostabi.EnvSpec
		policies map[string]string
		want     string // policies of the agents, or keys of the errors
	}{
		{arena, map[string]string{"red": "main", "agent/0": "rival"}, "main main rival"},
		{arena, map[string]string{"red/[01]": "main", "agent": "main"}, "main main main"},
		{arena, map[string]string{"*/1": "rival", "*/0": "main"}, "main rival main"},
		{duel, map[string]string{"*/*": "main"}, "main"},
		{arena, map[string]string{"*/*": "main", "red/1": "rival"}, "E055 policies.red/1"},
		{arena, map[string]string{"red": "main"}, "E055 policies"},
		{arena, map[string]string{"*/*": "main", "blue": "rival", "red/[": "rival"}, "E055 policies.blue E055 policies.red/["},
	} {
		f := Flow{Policies: c.policies}
		got, err := f.PolicyOfAgents(c.spec)
		if err != nil {
			got = nil
		}
		for _, e := range table.All(err) {
			got = append(got, e.Code, e.Key)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%v for %s: %s, want %s", c.policies, c.spec.Name, got, c.want)
		}
	}
}

func TestFlow_OpponentsTakeTwoAgents(t *testing.T) {
	f := Flow{Policies: map[string]string{"*/*": "main"}, Opponents: map[string]float64{"past": 0.2, "main": 0.1}}
	if got := f.Acting(); !slices.Equal(got, []string{"main", "past"}) {
		t.Errorf("acting: %v", got)
	}
	if _, err := f.PolicyOfAgents(&hostabi.EnvSpec{Groups: []hostabi.Group{{Agents: 2}}}); err != nil {
		t.Error(err)
	}
	if _, err := f.PolicyOfAgents(&hostabi.EnvSpec{}); err == nil || !strings.Contains(err.Error(), "two agents") {
		t.Errorf("with one agent: %v", err)
	}
}
