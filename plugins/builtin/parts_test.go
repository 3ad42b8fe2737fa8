package builtin

import (
	"reflect"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/runner"
)

func TestKinds_EveryPayloadHasARow(t *testing.T) {
	for kind, made := range Kinds(runner.Output{}) {
		m := made().Manifest()
		for _, port := range slices.Concat(m.Signals, m.Slots) {
			if p := component.PayloadOf(port.Payload); reflect.DeepEqual(p, component.Payload{Name: port.Payload}) {
				t.Errorf("%s.%s: nothing is known of payload %q: it has no row in core/component/payload.go", kind, port.Name, port.Payload)
			}
		}
	}
}
