package proxy

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// lie is a plugin's answer in its first session when it is paused, resumed, or asked for its waiting messages.
type lie struct {
	name    string
	answers rig.Answers
	rests   bool // in its first session
	dies    bool // and is replaced
}

func lies() []lie {
	die := func() any { os.Exit(3); return nil }
	hang := func() any { rig.Sleep(); return nil }
	nonsense := json.RawMessage(`["nonsense"]`)
	refuse := errors.New("not now")
	return []lie{
		{name: "refuses to rest", answers: rig.Answers{native.MethodPause: refuse}},
		{name: "nonsense instead of rest", answers: rig.Answers{native.MethodPause: nonsense}, rests: true},
		{name: "dies when it is to rest", answers: rig.Answers{native.MethodPause: die}, dies: true},
		{name: "hangs when it is to rest", answers: rig.Answers{native.MethodPause: hang}, dies: true},
		{name: "refuses to go on", answers: rig.Answers{native.MethodResume: refuse}, rests: true, dies: true},
		{name: "nonsense instead of going on", answers: rig.Answers{native.MethodResume: nonsense}, rests: true},
		{name: "dies when it is to go on", answers: rig.Answers{native.MethodResume: die}, rests: true, dies: true},
		{name: "hangs when it is to go on", answers: rig.Answers{native.MethodResume: hang}, rests: true, dies: true},
		{name: "refuses to say what waits", answers: rig.Answers{native.MethodWaiting: refuse}, rests: true},
		{name: "nonsense waits", answers: rig.Answers{native.MethodWaiting: nonsense}, rests: true},
		{name: "everything waits", answers: rig.Answers{native.MethodWaiting: everything}, rests: true},
		{name: "dies when it is to say what waits", answers: rig.Answers{native.MethodWaiting: die}, rests: true, dies: true},
		{name: "hangs when it is to say what waits", answers: rig.Answers{native.MethodWaiting: hang}, rests: true, dies: true},
	}
}

// everything names handles of all kinds.
func everything() any {
	random := rand.New(rand.NewPCG(1, 2))
	var list native.WaitingList
	for range 3000 {
		list.Messages = append(list.Messages, native.Waiting{
			Slot:    []string{"on_block", "on_number", "on_ask", "", "numbers"}[random.IntN(5)],
			Handle:  native.U64(hostabi.MakeHandle(uint8(random.IntN(4)), uint32(random.IntN(16)), uint64(random.IntN(8)))) >> (random.IntN(2) * random.IntN(64)),
			Claimed: random.IntN(2) == 0, Sender: uint16(random.Uint32()), T: uint32(random.IntN(4)),
		})
	}
	return list
}

// playLiar lies in its first session. It acknowledges all that it gets.
func playLiar(name, mark string) {
	for _, l := range lies() {
		if l.name != name {
			continue
		}
		a := rig.Answers{}
		if _, err := os.Stat(mark); err != nil {
			for method, answer := range l.answers {
				a[method] = answer
			}
		}
		m := new(keeper).Manifest()
		a[native.MethodDescribe] = native.Description{ABI: native.ABI, Capabilities: []string{native.CapPause},
			Kinds: []native.Kind{{Name: "liar", Signals: portsOf(m.Signals), Slots: portsOf(m.Slots)}}}
		v := &villain{}
		a[native.MethodStart] = func() any {
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				panic(err)
			}
			v.prepare()
			go v.acknowledge()
			return nil
		}
		rig.Serve(native.Version, a)
		return
	}
	panic("no lie " + name)
}

// acknowledge acknowledges everything.
func (v *villain) acknowledge() {
	got := make([]hostabi.Message, 16)
	for finished := uint64(0); ; {
		n := v.in.Get(got)
		for i := range got[:n] {
			if got[i].Slot < hostabi.LinkControl {
				finished++
			}
		}
		if n == 0 {
			v.in.Wait(10 * time.Millisecond)
			continue
		}
		v.put(hostabi.Message{Slot: hostabi.LinkAck, Ctl: finished})
	}
}

func TestPause_OfAPluginThatLies(t *testing.T) {
	for _, l := range lies() {
		t.Run(l.name, func(t *testing.T) { t.Parallel(); pauseLiar(t, l) })
	}
}

// pauseLiar pauses a liar, and looks whether the next session can be paused, and nothing is left of the lies.
func pauseLiar(t *testing.T, l lie) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	p := restless(spawntest.Self(t, "liar", l.name, filepath.Join(t.TempDir(), "mark")))
	p.Stall = 2 * time.Second
	c := newProxy(t, r, p, "liar")
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "liar"})
	a, x := s.Arena(8, 64, nil), c
	blocks := s.To("on_block", false, bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block})
	plugintest.Give(t, blocks, hostabi.Message{}, a, nil)
	restarts := s.Host.Stats.Counter("process/restarts/liar")
	rested := s.Pause()
	if l.rests || l.dies {
		<-rested
	} else {
		s.Until("that it does not rest is said", func() bool { return strings.Contains(s.Log(), "does not become idle") })
	}
	s.OnLoop(func() {
		list := x.Waiting()
		if len(list) > 1 {
			t.Errorf("%d messages wait of the one that it was given", len(list))
		}
		for _, w := range list {
			if w.Claimed {
				s.Done(w.Message.Handle)
			}
		}
	})
	s.OnLoop(x.Resume)
	if l.dies {
		testkit.Until(t, "a restart", func() bool { return restarts.Value() > 0 })
	}
	testkit.Until(t, "the plugin runs", func() bool { return s.Process().PID != 0 })
	plugintest.Give(t, blocks, hostabi.Message{}, a, nil)
	again := s.Pause()
	if l.rests || l.dies {
		<-again
	}
	if n := restarts.Value(); n > 0 != l.dies {
		t.Errorf("%d restarts; log:\n%s", n, s.Log())
	}
}

// hostileTable is a proxy without a process, with a block that came to its slot, a block that did not, and a block on loan
// that it was asked about.
type hostileTable struct {
	x                        *proxy
	given, stranger, on, off hostabi.Handle
	own                      uint8
}

func newTable(t testing.TB) *hostileTable {
	set := arena.NewSet()
	add := func(name string) *arena.Arena {
		a, err := set.Add(arena.Config{Name: name, Blocks: 4, BlockBytes: 64,
			Segment: func(_ string, bytes int) (*shm.Segment, error) { return shm.Heap(bytes) }})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	loan := func(a *arena.Arena) arena.Loan {
		l, err := a.Loan()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	mine, other := add("given"), add("stranger")
	on, off := loan(mine), loan(other)
	y := &hostileTable{given: plugintest.Commit(t, mine, nil), stranger: plugintest.Commit(t, other, nil), on: on.Handle(), off: off.Handle(), own: mine.ID()}
	y.x = &proxy{shared: shared{h: &component.Host{Arenas: set}, open: map[question]hostabi.Message{}, slots: make([]slot, 3)}}
	y.x.shared.manifest.Slots = []component.Port{
		{Name: "on_block", Payload: "trajectory"}, {Name: "on_number", Payload: "number"}, {Name: "on_ask", Payload: "ask"},
	}
	y.x.shared.slots[0].arenas[mine.ID()].Store(true)
	y.x.shared.slots[2].arenas[mine.ID()].Store(true)
	asked := hostabi.Message{Handle: y.on, T: 3, Sender: 9, Split: 5, Inline: [2]uint64{1, 2}}
	y.x.shared.open[questionOf(&asked)] = asked
	asked.Sender = 10
	y.x.shared.open[questionOf(&asked)] = asked
	t.Cleanup(func() {
		if err := errors.Join(mine.Release(y.given), other.Release(y.stranger), on.Abort(), off.Abort(), set.Close()); err != nil {
			t.Error(err)
		}
	})
	return y
}

// admitted is admitWaiting, without keeping the claim.
func (y *hostileTable) admitted(t testing.TB, w native.Waiting) (component.Waiting, bool) {
	m, ok := y.x.admitWaiting(&w)
	if m.Claimed {
		if err := y.x.shared.h.Arenas.Release(m.Message.Handle); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
	return m, ok
}

func TestWaiting_IsWhatTheProcessWasGiven(t *testing.T) {
	y := newTable(t)
	given, stranger, on, off := native.U64(y.given), native.U64(y.stranger), native.U64(y.on), native.U64(y.off)
	for _, c := range []struct {
		name string
		w    native.Waiting
		want bool
	}{
		{"a block that came to the slot", native.Waiting{Slot: "on_block", Handle: given, Claimed: true}, true},
		{"the same without a claim", native.Waiting{Slot: "on_block", Handle: given}, true},
		{"a slot that there is not", native.Waiting{Slot: "on_blok", Handle: given, Claimed: true}, false},
		{"a block of an arena that it never saw", native.Waiting{Slot: "on_block", Handle: stranger, Claimed: true}, false},
		{"a block that came to another slot", native.Waiting{Slot: "on_number", Handle: given, Claimed: true}, false},
		{"a stale block", native.Waiting{Slot: "on_block", Handle: given + 1<<10, Claimed: true}, false},
		{"a block on loan as if it were given", native.Waiting{Slot: "on_block", Handle: on, Claimed: true}, false},
		{"a trajectory without a block", native.Waiting{Slot: "on_block"}, false},
		{"a claim on nothing", native.Waiting{Slot: "on_number", Claimed: true}, false},
		{"a number", native.Waiting{Slot: "on_number"}, true},
		{"a question as a trajectory", native.Waiting{Slot: "on_block", Handle: on, T: 3, Sender: 10}, false},
		{"a question about another row", native.Waiting{Slot: "on_ask", Handle: on, T: 4, Sender: 9}, false},
		{"a question about another loan", native.Waiting{Slot: "on_ask", Handle: off, T: 3, Sender: 9}, false},
		{"a question as somebody else", native.Waiting{Slot: "on_ask", Handle: on, T: 3, Sender: 8}, false},
		{"an open question", native.Waiting{Slot: "on_ask", Handle: on, T: 3, Sender: 9, Claimed: true, Split: 77}, true},
		{"the same once more", native.Waiting{Slot: "on_ask", Handle: on, T: 3, Sender: 9}, false},
	} {
		m, ok := y.admitted(t, c.w)
		if ok != c.want {
			t.Errorf("%s: %v, want %v", c.name, ok, c.want)
		}
		if ok && c.w.Slot == "on_ask" && (m.Claimed || m.Message.Split != 5 || m.Message.Inline != [2]uint64{1, 2}) {
			t.Errorf("%s: %+v, want what was asked", c.name, m)
		}
	}
}

// FuzzWaiting: whatever messages a process returns, only blocks that it got are claimed, and each claim is on a live block.
func FuzzWaiting(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"slot":"on_block","handle":1,"claimed":true}]}`,
		`{"messages":[{"slot":"on_ask","handle":72057594037927936,"t":3,"sender":9},{"slot":"on_number"}]}`,
		`{"messages":null}`, `[]`, `{"messages":[{"handle":18446744073709551615,"slot":"on_block"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var list native.WaitingList
		if json.Unmarshal(doc, &list) != nil {
			return
		}
		y := newTable(t)
		for _, w := range list.Messages {
			m, ok := y.admitted(t, w)
			if h := m.Message.Handle; ok && h != 0 && h != y.given && h != y.on {
				t.Errorf("%+v was admitted as %+v", w, m)
			}
		}
	})
}

// A component pauses even while it gets more than it can handle.
func TestPause_UnderConstantTraffic(t *testing.T) {
	c := newProbe(t, spawntest.Self(t, "probe"))
	s := plugintest.NewStage(t, c, plugintest.StageOptions{})
	numbers := s.To("on_number", false, bus.Options{Mode: bus.All, Depth: 16, Overflow: bus.DropNewest})
	x := c
	var over atomic.Bool
	var feeder sync.WaitGroup
	feeder.Go(func() {
		for !over.Load() {
			if err := numbers.Emit(hostabi.Message{Kind: plugintest.OpSleep, Inline: [2]uint64{2}}); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	defer feeder.Wait()
	defer over.Store(true)
	for range 5 {
		sent := func() uint64 { return x.link.Load().Stats().Sent }
		before := sent()
		testkit.Until(t, "five messages more", func() bool { return sent() >= before+5 })
		<-s.Pause()
		at := sent()
		s.OnLoop(func() {}) // a turn of the loop, with something in front of it
		if n := sent(); n != at {
			t.Errorf("%d messages sent to a component at rest", n-at)
		}
		s.OnLoop(x.Resume)
	}
}

// Pause, Resume, Snapshot, Waiting and Stop may come while one process is replaced by the next.
func TestPause_WhileProcessesComeAndGo(t *testing.T) {
	c := newProbe(t, restless(spawntest.Self(t, "probe")))
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "probe"})
	numbers := s.To("on_number", false, bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block})
	x := c
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	over := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(1+i%7) * 9 * time.Millisecond):
			}
			if now := s.Process(); now.PID != 0 {
				_ = unix.Kill(now.PID, unix.SIGKILL) // it may be gone already
			}
		}
	})
	for range 60 {
		rested := s.Pause()
		if random.IntN(2) == 0 {
			select {
			case <-rested:
			case <-time.After(time.Duration(random.IntN(60)) * time.Millisecond):
			}
		}
		if err := numbers.Emit(hostabi.Message{Kind: plugintest.OpAdd}); err != nil {
			t.Fatal(err)
		}
		s.OnLoop(func() {
			switch random.IntN(3) {
			case 0:
				_, _ = c.Snapshot() // the process may die meanwhile
			case 1:
				x.Waiting()
			}
			x.Resume()
		})
	}
	close(over)
	killer.Wait()
	<-s.Pause()
	if n := s.Host.Receiver.Pauses(); n != 1 {
		t.Errorf("paused %d times at rest", n)
	}
	s.OnLoop(x.Resume)
	if n := s.Host.Receiver.Pauses(); n != 0 {
		t.Errorf("paused %d times after it", n)
	}
	s.OnLoop(func() { x.Pause(func() {}) })
	// Stage.Close stops it, paused as it is.
}
