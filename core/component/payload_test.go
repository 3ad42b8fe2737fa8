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
	read := func(page string) string {
		testkit.Reads(t, page)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	pages := map[bool]string{false: read("../../docs/reference/component-abi.md"), true: read("../../docs/reference/components.md")}
	seen := map[uint64]string{}
	for i := range payloads {
		p := &payloads[i]
		if other := seen[p.Schema()]; p.Schema() == 0 || other != "" {
			t.Errorf("%s: schema %x, as %q has", p.Name, p.Schema(), other)
		}
		seen[p.Schema()] = p.Name
		if row := fmt.Sprintf("| `%s` | `%016x` | %s |", p.Name, p.Schema(), p.Fields); !strings.Contains(pages[p.Own], row) || strings.Contains(pages[!p.Own], row) {
			t.Errorf("the row %s is not on the page where it belongs, or on both", row)
		}
	}
	if own := PayloadOf("mine"); own.Schema() != 0 {
		t.Error("a payload of somebody's own has a schema")
	}
}

// The payloads of the component ABI are frozen under their names: a change of their fields would be another payload.
func TestPayloads_AreFrozen(t *testing.T) {
	for name, want := range map[string]uint64{
		PayloadRequest: 0x6eeabd37f3db56a1, PayloadActions: 0x1504a834e3ab35bb, PayloadResets: 0xcbe81f37b4bb5932, PayloadParams: 0xf3c1fac92f06f10b,
		PayloadRewards: 0x4f5a92335682cac9, PayloadShaped: 0xc977001079b93a1b, PayloadObserve: 0xe8aca68d4e4f76a1, PayloadObserved: 0x5b5617d3b23aecd3,
		PayloadTrajectory: 0x33a032525bff12f9, PayloadEpisode: 0x131fae55dba6f5b5,
	} {
		if p := PayloadOf(name); p.Schema() != want || p.Own {
			t.Errorf("%s: schema %016x, want %016x", name, p.Schema(), want)
		}
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
