package module

import (
	"testing"

	"github.com/rlhost/rlhost/sdk/component"
)

func TestOutcome_OneOfALaterVersionCountsAsSent(t *testing.T) {
	for n, want := range []component.Outcome{component.Sent, component.Parked, component.Dropped, component.Sent} {
		if got := outcomeOf(int32(n)); got != want {
			t.Errorf("outcome %d is %v, want %v", n, got, want)
		}
	}
}
