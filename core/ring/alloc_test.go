package ring

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

func TestSPSC_AllocateNothing(t *testing.T) {
	out, in := heapSPSC(t, 4)
	ms := make([]hostabi.Message, 4)
	if n := testing.AllocsPerRun(200, func() {
		out.Put(ms)
		out.WaitRoom(time.Microsecond)
		in.Get(ms)
		in.Wait(time.Microsecond)
		in.Nudge()
		in.Wait(-1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
