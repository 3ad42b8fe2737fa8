package proxy

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	sdk "github.com/rlhost/rlhost/sdk/process"
)

// keeper keeps the blocks that it gets, and pauses when its other slot gets a message.
type keeper struct {
	h      *component.Host
	kept   []hostabi.Message
	leases []arena.Lease
	rested func()
	told   bool
}

func serveKeeper() {
	sdk.Serve(sdk.Plugin{Kinds: map[string]func() component.Component{"keeper": func() component.Component { return &keeper{} }}})
}

func (k *keeper) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "numbers", Payload: "number"}},
		Slots:   []component.Port{{Name: "on_block", Payload: "block"}, {Name: "on_number", Payload: "number"}},
	}
}

func (k *keeper) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (k *keeper) Start(h *component.Host) error {
	k.h = h
	h.Slot("on_block", func(m *hostabi.Message) {
		lease, err := h.Arenas.Lease(m.Handle)
		if err != nil {
			h.Fail(err)
			return
		}
		k.kept, k.leases = append(k.kept, *m), append(k.leases, lease)
		k.count()
	})
	h.Slot("on_number", func(*hostabi.Message) {
		k.told = true
		k.rest()
		k.count()
	})
	return nil
}

func (k *keeper) count() {
	if err := k.h.Signal("numbers").Emit(hostabi.Message{Inline: [2]uint64{uint64(len(k.kept))}}); err != nil {
		k.h.Fail(err)
	}
}

func (k *keeper) Pause(rested func()) {
	k.rested = rested
	k.rest()
}

func (k *keeper) rest() {
	if k.told && k.rested != nil {
		k.rested()
		k.rested = nil
	}
}

func (k *keeper) Resume() { k.rested = nil }

// Waiting returns all of the blocks.
func (k *keeper) Waiting() (list []component.Waiting) {
	for i := range k.leases {
		if err := k.h.Arenas.Retain(k.kept[i].Handle); err != nil {
			k.h.Fail(err)
			continue
		}
		list = append(list, component.Waiting{Slot: "on_block", Message: k.kept[i], Claimed: true})
	}
	if err := k.Stop(); err != nil {
		k.h.Fail(err)
	}
	k.kept = nil
	return list
}

func (k *keeper) Snapshot() (component.State, error) { return component.State{Meta: len(k.kept)}, nil }
func (k *keeper) Restore(component.State) error      { return nil }

func (k *keeper) Stop() (err error) {
	for i := range k.leases {
		if e := k.leases[i].Release(); e != nil {
			err = e
		}
	}
	k.leases = nil
	return err
}

// kept is a stage with a keeper in a process.
type kept struct {
	*plugintest.Stage
	x       *proxy
	arena   *arena.Arena
	blocks  *bus.Signal
	numbers *bus.Signal
}

func newKept(t *testing.T, role string) *kept {
	t.Helper()
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	c := newProxy(t, r, spawntest.Self(t, role), role)
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: role})
	block := bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block}
	k := &kept{Stage: s, x: c, arena: s.Arena(8, 64, nil)}
	k.blocks, k.numbers = s.To("on_block", false, block), s.To("on_number", false, block)
	s.From("numbers", false, block)
	return k
}

// give gives the keeper a block and waits until it has it.
func (k *kept) give(t *testing.T, number uint32) hostabi.Handle {
	t.Helper()
	h := plugintest.Give(t, k.blocks, hostabi.Message{T: number, Split: 3, Inline: [2]uint64{7, 9}}, k.arena, nil)
	k.Next("numbers")
	return h
}

func TestPause_RestsWhenTheComponentInTheProcessDoes(t *testing.T) {
	k := newKept(t, "keeper")
	h := k.give(t, 5)
	rested := k.Pause()
	k.give(t, 6) // slots are called until it has paused
	select {
	case <-rested:
		t.Fatal("at rest before its component is")
	default:
	}
	if err := k.numbers.Emit(hostabi.Message{}); err != nil {
		t.Fatal(err)
	}
	<-rested
	var list []component.Waiting
	k.OnLoop(func() { list = k.x.Waiting() })
	if len(list) != 2 || list[0].Slot != "on_block" || !list[0].Claimed {
		t.Fatalf("waiting %+v, want both blocks", list)
	}
	if m := list[0].Message; m.Handle != h || m.T != 5 || m.Split != 3 || m.Inline != [2]uint64{7, 9} {
		t.Errorf("the first is %+v", m)
	}
	if err := k.x.Stop(); err != nil { // the process ends, and its claims with it
		t.Error(err)
	}
	for i := range list {
		if lease, err := k.Arenas.Lease(list[i].Message.Handle); err != nil {
			t.Errorf("block %d is gone with the process: %v", i, err)
		} else if err := lease.Release(); err != nil {
			t.Error(err)
		}
		if err := k.Arenas.Release(list[i].Message.Handle); err != nil {
			t.Error(err)
		}
	}
	if s := k.arena.Stats(); s.Live != 0 {
		t.Errorf("%+v, want no claim left", s)
	}
}

func TestResume_LetsTheComponentGoOn(t *testing.T) {
	k := newKept(t, "keeper")
	k.OnLoop(func() { k.x.Pause(func() { t.Error("at rest after Resume") }) })
	k.give(t, 1)
	k.OnLoop(func() { k.x.Resume() })
	k.give(t, 2)
	if err := k.numbers.Emit(hostabi.Message{}); err != nil {
		t.Fatal(err)
	}
	k.Next("numbers")
	<-k.Pause()
	k.OnLoop(func() { k.x.Resume() })
	k.give(t, 3)
}

// A process that dies while it should pause is replaced, and its successor is asked.
func TestPause_AsksTheSuccessorOfADeadProcess(t *testing.T) {
	k := newKept(t, "keeper")
	rested := k.Pause()
	before := k.Process()
	if err := unix.Kill(before.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the plugin runs again", func() bool { now := k.Process(); return now.PID != 0 && now.PID != before.PID })
	if err := k.numbers.Emit(hostabi.Message{}); err != nil {
		t.Fatal(err)
	}
	<-rested
	k.OnLoop(func() { k.x.Resume() })
	k.give(t, 1)
}

// A component that cannot be told to pause counts as paused between two messages.
func TestPause_OfAComponentWithoutIt(t *testing.T) {
	c := newProbe(t, spawntest.Self(t, "unpausable"))
	s := plugintest.NewStage(t, c, plugintest.StageOptions{})
	block := bus.Options{Mode: bus.All, Depth: 256, Overflow: bus.Block}
	numbers := s.To("on_number", false, block)
	s.From("numbers", false, block)
	for i := range uint64(100) {
		if err := numbers.Emit(hostabi.Message{Kind: plugintest.OpEcho, Inline: [2]uint64{i}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Until("given", func() bool { return numbers.Stats().Emitted == 100 && numbers.Connections()[0].Stats().Queued == 0 })
	rested := make(chan int)
	s.OnLoop(func() { c.Pause(func() { go func() { rested <- s.Waiting("numbers") }() }) })
	<-rested
	for i := range uint64(100) {
		if m := s.Next("numbers"); m.Inline[0] != i {
			t.Fatalf("answer %d is %+v", i, m)
		}
	}
}
