package component

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

func TestPayloads_EachHasOneRow(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range payloads {
		if seen[p.Name] || p.Name == "" {
			t.Errorf("%q has two rows, or no name", p.Name)
		}
		seen[p.Name] = true
		if got := PayloadOf(p.Name); got.Name != p.Name {
			t.Errorf("PayloadOf(%q) = %+v", p.Name, got)
		}
		if (p.Steps || p.Learned || p.Publishes) && !p.Block {
			t.Errorf("%q speaks of a block and has none", p.Name)
		}
	}
	if got := PayloadOf("mine"); !reflect.DeepEqual(got, Payload{Name: "mine"}) {
		t.Errorf("a payload of somebody's own is %+v", got)
	}
}

func TestPayloads_InlineIsJSONWhateverTheMessage(t *testing.T) {
	m := trajectory.Episode{Env: 3, Return: float32(math.Inf(1)), Length: 7}.Message()
	for _, p := range payloads {
		for _, m := range []hostabi.Message{m, {}} {
			if p.Inline == nil {
				continue
			}
			if _, err := json.Marshal(p.Inline(&m)); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
}
