package author_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/author/authortest"
	"github.com/rlhost/rlhost/plugins/plugintest"
	sdk "github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/sdktest/scribe"
)

func TestAuthored_BuiltIn(t *testing.T) {
	authortest.TestRuntime(t, func(testing.TB) component.Component { return author.Kind(scribe.New)() })
}

// relay rewrites a column, looks at another, passes blocks on and notes their fate.
type relay struct {
	sdk.Stateless
	host     sdk.Host
	out      sdk.Signal
	outcomes []sdk.Outcome
}

func (r *relay) Manifest() sdk.Manifest {
	return sdk.Manifest{Signals: []sdk.Port{{Name: "out", Payload: "p"}}, Slots: []sdk.Port{{Name: "in", Payload: "p"}}}
}

func (r *relay) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (r *relay) Start(h sdk.Host) error {
	r.host, r.out = h, h.Signal("out")
	h.Slot("in", r.pass)
	return nil
}

func (r *relay) pass(m *sdk.Message) {
	if m.Block != nil {
		r.shape(m.Block)
	}
	o, err := r.out.Emit(*m)
	if err != nil {
		r.host.Fail(err)
	}
	if m.Kind > 0 {
		r.outcomes = append(r.outcomes, o)
	}
}

func (r *relay) shape(b sdk.Block) {
	reward, err := b.Writable("reward")
	if err != nil {
		r.host.Fail(err)
		return
	}
	obs, err := b.Column("obs")
	if err != nil {
		r.host.Fail(err)
		return
	}
	for i := range reward.Float32() {
		reward.Float32()[i] += obs.Float32()[i*obs.StrideT]
	}
}

// keeper leases each block until the next message.
type keeper struct {
	relay
	lease sdk.Lease
}

func (c *keeper) Start(h sdk.Host) error {
	h.Slot("in", func(m *sdk.Message) {
		var err error
		if c.lease != nil {
			err = c.lease.Release()
		}
		if c.lease = nil; m.Block != nil && err == nil {
			c.lease, err = m.Block.Lease()
		}
		if err != nil {
			h.Fail(err)
		}
	})
	return nil
}

// A run that continued from a state would not have the blocks that are leased, though the author says that there is nothing to save.
func TestSnapshot_ThereIsNoneWhileBlocksAreLeased(t *testing.T) {
	r := plugintest.NewRig(t, author.Kind(func() sdk.Component { return &keeper{} })(), plugintest.RigOptions{Name: "keeper"}, plugintest.DecodeTable(nil))
	a, err := r.Host.Arena(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	h, err := loan.Commit()
	if err != nil {
		t.Fatal(err)
	}
	in := r.To("in")
	for _, m := range []hostabi.Message{{Handle: h}, {}} {
		if err := in.Emit(m); err != nil {
			t.Fatal(err)
		}
		r.MustSettle()
		if _, err := r.Component.Snapshot(); errors.Is(err, component.ErrNoSnapshot) != (m.Handle != 0) {
			t.Errorf("Snapshot = %v; the block is leased: %t", err, m.Handle != 0)
		}
	}
	if err := a.Release(h); err != nil {
		t.Error(err)
	}
}

func TestSignal_SaysWhatBecameOfAMessage(t *testing.T) {
	for _, c := range []struct {
		name string
		wire *bus.Options
		want [3]sdk.Outcome
	}{
		{"no wire", nil, [3]sdk.Outcome{sdk.Dropped, sdk.Dropped, sdk.Dropped}},
		{"room", &bus.Options{Depth: 3}, [3]sdk.Outcome{sdk.Sent, sdk.Sent, sdk.Sent}},
		{"block", &bus.Options{Depth: 1, Overflow: bus.Block}, [3]sdk.Outcome{sdk.Sent, sdk.Parked, sdk.Parked}},
		{"drop_newest", &bus.Options{Depth: 1, Overflow: bus.DropNewest}, [3]sdk.Outcome{sdk.Sent, sdk.Dropped, sdk.Dropped}},
		{"drop_oldest", &bus.Options{Depth: 1, Overflow: bus.DropOldest}, [3]sdk.Outcome{sdk.Sent, sdk.Sent, sdk.Sent}},
		{"latest", &bus.Options{Mode: bus.Latest, Depth: 1}, [3]sdk.Outcome{sdk.Sent, sdk.Sent, sdk.Sent}},
	} {
		t.Run(c.name, func(t *testing.T) {
			thrice := &thrice{}
			r := plugintest.NewRig(t, author.Kind(func() sdk.Component { return thrice })(), plugintest.RigOptions{Name: "relay"}, plugintest.DecodeTable(nil))
			if c.wire != nil {
				wire(t, r, *c.wire)
			}
			if err := r.To("in").Emit(hostabi.Message{Kind: 1}); err != nil {
				t.Fatal(err)
			}
			if err := r.Settle(); err != nil || [3]sdk.Outcome(thrice.outcomes) != c.want {
				t.Errorf("%v, %v, want %v", thrice.outcomes, err, c.want)
			}
		})
	}
}

// wire connects out to a slot that never runs.
func wire(t *testing.T, r *plugintest.Rig, o bus.Options) {
	t.Helper()
	l := loop.New("idle")
	c, err := bus.Connect(r.Host.Signal("out"), bus.NewSlot(l.NewReceiver("idle"), "in", "p", func(*hostabi.Message) {}), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.DisconnectNow()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// thrice passes each message on three times.
type thrice struct{ relay }

func (c *thrice) Start(h sdk.Host) error {
	c.host, c.out = h, h.Signal("out")
	h.Slot("in", func(m *sdk.Message) {
		for range 3 {
			c.pass(m)
		}
	})
	return nil
}

func TestSignal_FailsTheComponentWhereTheWireSaysSo(t *testing.T) {
	r := plugintest.NewRig(t, author.Kind(func() sdk.Component { return &thrice{} })(), plugintest.RigOptions{Name: "relay"}, plugintest.DecodeTable(nil))
	wire(t, r, bus.Options{Depth: 1, Overflow: bus.Fail})
	if err := r.To("in").Emit(hostabi.Message{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(); err == nil || !strings.Contains(err.Error(), "relay") {
		t.Errorf("error %v, want one of relay", err)
	}
}
