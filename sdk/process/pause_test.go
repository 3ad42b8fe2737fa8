package process

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/rlhost/rlhost/sdk/process/protocol"
)

func TestPause_IsAnsweredAtRestAndRefusedTwice(t *testing.T) {
	r := newRig(t, probes())
	if _, err := call[protocol.Empty](r, protocol.MethodPause, protocol.Empty{}); codeOf(err) != codes.FailedPrecondition {
		t.Errorf("Pause before Start: %v", err)
	}
	r.start("probe", nil)
	for range 2 {
		if _, err := call[protocol.Empty](r, protocol.MethodPause, protocol.Empty{}); err != nil {
			t.Fatal(err)
		}
		if _, err := call[protocol.Empty](r, protocol.MethodPause, protocol.Empty{}); codeOf(err) != codes.FailedPrecondition {
			t.Errorf("a second Pause: %v", err)
		}
		list, err := call[protocol.WaitingList](r, protocol.MethodWaiting, protocol.Empty{})
		if err != nil || len(list.Messages) != 0 {
			t.Errorf("waiting %+v, %v", list, err)
		}
		if _, err := call[protocol.Empty](r, protocol.MethodResume, protocol.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := call[protocol.Empty](r, protocol.MethodResume, protocol.Empty{}); err != nil {
		t.Errorf("Resume without Pause: %v", err)
	}
}
