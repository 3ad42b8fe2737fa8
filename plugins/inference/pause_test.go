package inference

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// A batch that is being gathered is served before the component has paused.
func TestPause_ComesAfterTheBatch(t *testing.T) {
	r := newRig(t, New(), 1, 64)
	c := r.Component.(*Inference)
	c.flushing = true
	rested := false
	c.Pause(func() { rested = true })
	if rested {
		t.Error("at rest with a batch on its way")
	}
	c.flush(&hostabi.Message{})
	if !rested {
		t.Error("not at rest after the batch")
	}
	rested = false
	c.Pause(func() { rested = true })
	if !rested {
		t.Error("not at rest with nothing to do")
	}
}

// A request that waits for further rows is answered before the component has paused.
func TestPause_EndsAWaitForRows(t *testing.T) {
	r := newRig(t, New(), 1, 64)
	c := r.Component.(*Inference)
	c.config.MinRows, c.config.MaxWait = 64, time.Minute
	r.publish(t, r.network, 1)
	r.ask(t, 0, 1, nil)
	r.MustSettle()
	if len(r.replies) != 0 {
		t.Fatal("it has not waited")
	}
	rested := false
	c.Pause(func() { rested = true })
	if rested {
		t.Error("at rest with a request that waits")
	}
	r.MustSettle()
	if !rested || len(r.replies) != 1 {
		t.Errorf("at rest: %v, with %d replies", rested, len(r.replies))
	}
}

func TestWaiting_HandsOverRequestsThatCameBeforeAnyWeights(t *testing.T) {
	r := newRig(t, New(), 1, 64)
	c := r.Component.(*Inference)
	m := trajectory.ActRequest{Block: r.handles[0], T: 0}.Message()
	m.Sender = 3
	if err := r.act.Emit(m); err != nil {
		t.Fatal(err)
	}
	r.MustSettle()
	list := c.Waiting()
	if len(list) != 1 || list[0].Slot != "act" || list[0].Claimed || list[0].Message.Handle != r.handles[0] || list[0].Message.Sender != 3 {
		t.Errorf("waiting %+v, want the one request, without a claim", list)
	}
	if again := c.Waiting(); len(again) != 0 {
		t.Errorf("%d are handed over twice", len(again))
	}
}
