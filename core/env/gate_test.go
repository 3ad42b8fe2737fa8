package env

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var errGone = errors.New("gone")

func newGate() *Gate { return &Gate{Name: "rollout[1]", Closed: errGone} }

func TestGate_LetsOneCallInAtATime(t *testing.T) {
	g := newGate()
	if err := g.Enter(); err != nil || !g.Busy() {
		t.Fatalf("Enter of an open gate = %v, busy %v", err, g.Busy())
	}
	_, seizeErr := g.EnterPoisoned()
	_, shutErr := g.Shut()
	for _, err := range []error{g.Enter(), seizeErr, shutErr} {
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "rollout[1] is called during another call") {
			t.Errorf("during a call: %v", err)
		}
	}
	g.Leave()
	if err := g.Enter(); err != nil {
		t.Errorf("Enter after Leave = %v", err)
	}
}

func TestGate_PoisonedIsForSeizeAlone(t *testing.T) {
	g := newGate()
	if err := g.Enter(); err != nil {
		t.Fatal(err)
	}
	g.Poison()
	g.Leave()
	if err := g.Enter(); !errors.Is(err, ErrPoisoned) || err.Error() != "rollout[1]: "+ErrPoisoned.Error() {
		t.Errorf("Enter of a poisoned gate = %v", err)
	}
	for range 2 { // once nothing is changed, once it is mended
		if poisoned, err := g.EnterPoisoned(); !poisoned || err != nil {
			t.Fatalf("EnterPoisoned = %v, %v, want that it was poisoned", poisoned, err)
		}
		g.Poison()
		g.Leave()
	}
	if _, err := g.EnterPoisoned(); err != nil {
		t.Fatal(err)
	}
	g.Leave()
	if poisoned, err := g.EnterPoisoned(); poisoned || err != nil {
		t.Errorf("EnterPoisoned of a gate that was mended = %v, %v", poisoned, err)
	}
}

func TestGate_ShutIsForEverAndFirstOnce(t *testing.T) {
	for _, poison := range []bool{false, true} {
		g := newGate()
		if poison {
			g.Poison()
		}
		for _, want := range []bool{true, false, false} {
			if first, err := g.Shut(); first != want || err != nil {
				t.Errorf("Shut = %v, %v, want %v", first, err, want)
			}
		}
		_, seizeErr := g.EnterPoisoned()
		for _, err := range []error{g.Enter(), seizeErr} {
			if !errors.Is(err, ErrUnsupported) || !errors.Is(err, errGone) || !strings.Contains(err.Error(), "rollout[1]") {
				t.Errorf("after Shut: %v", err)
			}
		}
		g.Leave() // of a call that ends late: nothing
		if first, err := g.Shut(); first || err != nil {
			t.Errorf("Shut = %v, %v", first, err)
		}
	}
}

func TestGate_OfManyGoroutinesIsTakenByOne(t *testing.T) {
	g := newGate()
	var inside, entered atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if g.Enter() != nil {
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				entered.Add(1)
				inside.Add(-1)
				g.Leave()
			}
		})
	}
	all.Wait()
	if entered.Load() == 0 {
		t.Error("no call was admitted")
	}
}

func TestGateAndChecks_DoNotAllocate(t *testing.T) {
	g, o := newGate(), Options{Name: "x", Envs: 2}
	mask, seeds := make([]uint8, 2), make([]uint64, 2)
	if n := testing.AllocsPerRun(100, func() {
		if g.Enter() != nil || o.CheckStep(4, 3) != nil || o.CheckReset(4, 4, mask, seeds) != nil {
			t.Error("refused")
		}
		g.Leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
