package component

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
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

// The schemas of the host's own components are documented for authors, payload by payload.
func TestPayloads_EachHasASchemaThatIsWrittenDown(t *testing.T) {
	const page = "../../docs/reference/component-abi.md"
	testkit.Reads(t, page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]string{}
	for i := range payloads {
		p := &payloads[i]
		if other := seen[p.Schema()]; p.Schema() == 0 || other != "" {
			t.Errorf("%s: schema %x, as %q has", p.Name, p.Schema(), other)
		}
		seen[p.Schema()] = p.Name
		if row := fmt.Sprintf("| `%s` | `%016x` | %s |", p.Name, p.Schema(), p.Fields); !strings.Contains(string(text), row) {
			t.Errorf("%s lacks the row %s", page, row)
		}
	}
	if own := PayloadOf("mine"); own.Schema() != 0 {
		t.Error("a payload of somebody's own has a schema")
	}
}

// A port without a schema for a payload that the host knows has the host's schema.
func TestPort_AgreesToTheHostsSchema(t *testing.T) {
	known := PayloadOf(PayloadTrajectory)
	for want, p := range map[uint64]Port{7: {Payload: PayloadTrajectory, Schema: 7}, known.Schema(): {Payload: PayloadTrajectory}, 0: {Payload: "mine"}} {
		if got := p.Agreed(); got != want {
			t.Errorf("%+v agrees to %x, want %x", p, got, want)
		}
	}
	a, b := Manifest{Slots: []Port{{Payload: PayloadTrajectory}}}, Manifest{Slots: []Port{{Payload: PayloadTrajectory, Schema: known.Schema()}}}
	if other := (Manifest{Slots: []Port{{Payload: PayloadTrajectory, Schema: 7}}}); !a.SamePorts(&b) || a.SamePorts(&other) {
		t.Error("ports are told apart by something else than what they agree to")
	}
}
