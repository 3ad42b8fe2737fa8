package process

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/sdk/process/protocol"
)

func TestPause_IsEndedByAResumeThatOvertakesIt(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	do := func(method string, number uint64) error {
		_, err := call[protocol.Empty](r, method, protocol.Pausing{Number: number})
		return err
	}
	for _, step := range []struct {
		method string
		number uint64
		want   string // in the error
	}{
		{protocol.MethodResume, 1, ""}, {protocol.MethodPause, 1, "resumed before"}, {protocol.MethodPause, 2, ""},
		{protocol.MethodPause, 3, "paused already"}, {protocol.MethodResume, 2, ""}, {protocol.MethodResume, 2, ""},
		{protocol.MethodPause, 3, ""}, {protocol.MethodResume, 3, ""},
	} {
		err := do(step.method, step.number)
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s %d: %v, want %q", step.method, step.number, err, step.want)
		}
	}
}
