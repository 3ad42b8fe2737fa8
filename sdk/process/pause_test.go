package process

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi/native"
)

func TestPause_IsEndedByAResumeThatOvertakesIt(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	do := func(method string, number uint64) error {
		_, err := call[native.Empty](r, method, native.Pausing{Number: number})
		return err
	}
	for _, step := range []struct {
		method string
		number uint64
		want   string // in the error
	}{
		{native.MethodResume, 1, ""}, {native.MethodPause, 1, "resumed before"}, {native.MethodPause, 2, ""},
		{native.MethodPause, 3, "paused already"}, {native.MethodResume, 2, ""}, {native.MethodResume, 2, ""},
		{native.MethodPause, 3, ""}, {native.MethodResume, 3, ""},
	} {
		err := do(step.method, step.number)
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s %d: %v, want %q", step.method, step.number, err, step.want)
		}
	}
}
