package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// world is the target of a script: the bus, or the model of it.
type world interface {
	emit(sig int, m hostabi.Message)
	connect(sig, to int, o bus.Options)
	disconnect(conn int, now bool)
	redirect(conns []int, to int) // the first to that component, the others to the components after it
	moveSignal(conn, sig int)
	pause(component int)
	resume(component int)
	hold(component int)
	release(component int)
	size() int // connections ever made
	run(step func(world))
	state() []string
	journal() []string
}

// graph is the start of a script.
type graph struct {
	components int
	signals    []int    // owner of each signal
	reacts     [][3]int // slot of connection i, modulo: emits on signal [0], [1] times, and does [2]
}

// maxMessages stops components that would answer each other for ever.
const maxMessages = 3000

// reactions are the actions of slots, the same in both worlds.
type reactions struct {
	graph graph
	log   []string
	count int
}

func (r *reactions) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}
func (r *reactions) journal() []string { return r.log }

func (r *reactions) react(w world, conn int, m hostabi.Message) {
	r.note("connection %d: message %d kind %d of %d", conn, m.Sequence, m.Kind, m.Sender)
	r.count++
	if m.T == 0 || r.count > maxMessages || len(r.graph.reacts) == 0 {
		return
	}
	does := r.graph.reacts[conn%len(r.graph.reacts)]
	for range does[1] {
		w.emit(does[0], hostabi.Message{T: m.T - 1, Sender: m.Sender, Kind: m.Kind + 1, Handle: m.Handle})
	}
	switch {
	case does[2] == 1 && m.Sequence%7 == 0:
		w.disconnect(conn, false)
	case does[2] == 2 && m.Sequence%7 == 0:
		w.disconnect(conn, true)
	}
}

// real is the bus, with all components on one loop.
type real struct {
	reactions
	loop       *loop.Loop
	script     *loop.Receiver
	components []*loop.Receiver
	signals    []*bus.Signal
	conns      []*bus.Connection
	claims     *claims
}

func newReal(g graph) *real {
	w := &real{reactions: reactions{graph: g}, loop: loop.New("loop"), claims: newClaims()}
	w.script = w.loop.NewReceiver("script")
	for i := range g.components {
		w.components = append(w.components, w.loop.NewReceiver(fmt.Sprint(i)))
	}
	for i, owner := range g.signals {
		w.signals = append(w.signals, bus.NewSignal(w.components[owner], fmt.Sprint(i), "payload", w.claims))
	}
	return w
}

func (w *real) run(step func(world)) {
	w.script.Control(func(*hostabi.Message) { step(w) }, hostabi.Message{})
	synctest.Wait()
}

func (w *real) emit(sig int, m hostabi.Message) {
	if m.Handle != 0 {
		w.claims.Retain(m.Handle) // the emitter's own claim
		defer w.claims.Release(m.Handle)
	}
	before := w.signals[sig].Stats().Emitted
	if err := w.signals[sig].Emit(m); errors.Is(err, bus.ErrFull) {
		w.note("signal %d: message %d: full", sig, before+1)
	}
}

func (w *real) connect(sig, to int, o bus.Options) {
	id := len(w.conns)
	if c, err := bus.Connect(w.signals[sig], w.slot(to, id), o); err == nil {
		w.conns = append(w.conns, c)
	}
}

func (w *real) slot(to, id int) *bus.Slot {
	return bus.NewSlot(w.components[to], "slot", "payload", func(m *hostabi.Message) { w.react(w, id, *m) })
}

func (w *real) redirect(conns []int, to int) {
	var ways []bus.Way
	for k, i := range conns {
		ways = append(ways, bus.Way{Connection: w.conns[i], To: w.slot((to+k)%len(w.components), i)})
	}
	if err := bus.Redirect(ways...); err != nil {
		w.note("%v", err)
	}
}

func (w *real) moveSignal(i, sig int) {
	if err := bus.MoveSignal(w.conns[i], w.signals[sig]); err != nil {
		w.note("no move of signal %d", sig)
	}
}

func (w *real) disconnect(i int, now bool) {
	if now {
		w.conns[i].DisconnectNow()
		return
	}
	w.conns[i].Disconnect()
}

func (w *real) pause(c int)   { w.components[c].Pause() }
func (w *real) resume(c int)  { w.components[c].Resume() }
func (w *real) hold(c int)    { w.components[c].Hold() }
func (w *real) release(c int) { w.components[c].Release() }
func (w *real) size() int     { return len(w.conns) }
func (w *model) size() int    { return len(w.conns) }

func (w *real) state() []string {
	var lines []string
	for i, c := range w.conns {
		lines = append(lines, fmt.Sprintf("connection %d: %+v", i, c.Stats()))
	}
	for i, s := range w.signals {
		newest, _ := s.Newest()
		lines = append(lines, fmt.Sprintf("signal %d: emitted %d unconnected %d connections %d newest %d", i,
			s.Stats().Emitted, s.Stats().Unconnected, len(s.Connections()), newest.Sequence))
	}
	for i, c := range w.components {
		lines = append(lines, fmt.Sprintf("component %d: paused %v", i, c.Paused()))
	}
	return append(lines, fmt.Sprintf("held %d", w.claims.total()))
}

// script reads decisions from bytes; after the end all are 0.
type script []byte

func (s *script) next(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

func (s *script) graph() graph {
	g := graph{components: 1 + s.next(4)}
	for range 1 + s.next(4) {
		g.signals = append(g.signals, s.next(g.components))
	}
	for range s.next(5) {
		g.reacts = append(g.reacts, [3]int{s.next(len(g.signals)), s.next(3), s.next(8)})
	}
	return g
}

func (s *script) options() bus.Options {
	return bus.Options{
		Mode:     bus.Mode(s.next(4)),
		Overflow: bus.Overflow(s.next(5)),
		Depth:    1 + s.next(5),
		Peer:     uint16(s.next(3)),
	}
}

// op is one decision of the script, as something to do in either world.
func (s *script) op(g graph, paused, held []int) func(world) {
	kind, a, b := s.next(16), s.next(256), s.next(256)
	component := a % g.components
	switch {
	case kind < 4:
		sig, o := a%len(g.signals), s.options()
		return func(w world) { w.connect(sig, b%g.components, o) }
	case kind == 4 || kind == 5:
		return func(w world) {
			if n := w.size(); n > 0 {
				w.disconnect(a%n, kind == 5)
			}
		}
	case kind == 6:
		paused[component]++
		return func(w world) { w.pause(component) }
	case kind == 7 && paused[component] > 0:
		paused[component]--
		return func(w world) { w.resume(component) }
	case kind >= 8 && kind <= 10:
		return change(g, kind, a, b)
	case kind == 11 && b%2 == 0:
		held[component]++
		return func(w world) { w.hold(component) }
	case kind == 11:
		if held[component] > 0 {
			held[component]--
		}
		return func(w world) { w.release(component) }
	}
	m := hostabi.Message{T: uint32(s.next(3)), Sender: uint16(s.next(3))}
	m.Handle = hostabi.Handle(s.next(6))
	return func(w world) {
		for range 1 + b%9 {
			w.emit(a%len(g.signals), m)
		}
	}
}

// change moves an end of connections.
func change(g graph, kind, a, b int) func(world) {
	return func(w world) {
		n := w.size()
		if n == 0 {
			return
		}
		if kind == 10 {
			w.moveSignal(a%n, b%len(g.signals))
			return
		}
		conns := []int{a % n, (a + 1) % n, b % n}[:1+b%3]
		slices.Sort(conns)
		w.redirect(slices.Compact(conns), b%g.components)
	}
}

// checkScript plays a script on the bus and on the model and compares all that can be seen after each step.
func checkScript(t *testing.T, s script) {
	g := s.graph()
	r, m := newReal(g), newModel(g)
	ended := make(chan error, 1)
	go func() { ended <- r.loop.Run(t.Context()) }()
	paused, held := make([]int, g.components), make([]int, g.components)
	both := func(step func(world)) bool {
		r.run(step)
		m.run(step)
		return same(t, r, m)
	}
	good := true
	for steps := 0; good && len(s) > 0 && steps < 60; steps++ {
		var ops []func(world)
		for range 1 + s.next(6) {
			ops = append(ops, s.op(g, paused, held))
		}
		good = both(func(w world) {
			for _, op := range ops {
				op(w)
			}
		})
	}
	if good {
		both(func(w world) {
			for c, n := range paused {
				for range n {
					w.resume(c)
				}
				for range held[c] {
					w.release(c)
				}
			}
		})
	}
	r.loop.Stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	r.loop.Close()
	r.claims.expectBalance(t)
	for i, c := range r.conns {
		if s := c.Stats(); s.Queued != 0 || s.Parked != 0 {
			t.Errorf("after Close connection %d has %d queued and %d parked", i, s.Queued, s.Parked)
		}
	}
}

func same(t *testing.T, r, m world) bool {
	t.Helper()
	for i, got := range r.journal() {
		if want := m.journal(); i >= len(want) || got != want[i] {
			t.Errorf("entry %d of the journal: %q, want %q", i, got, slices.Concat(want, []string{"nothing"})[i])
			return false
		}
	}
	if got, want := len(r.journal()), len(m.journal()); got != want {
		t.Errorf("%d entries in the journal, want %d: the next is %q", got, want, m.journal()[got])
		return false
	}
	got, want := r.state(), m.state()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("state:\n got %q\nwant %q", got, want[i])
			return false
		}
	}
	return true
}

func TestBus_BehavesLikeTheModel(t *testing.T) {
	scripts := 250
	if testing.Short() {
		scripts = 60
	}
	testkit.Scripts(t, scripts, 600, play)
}

// play plays a script in a bubble.
func play(t *testing.T, bytes []byte) {
	synctest.Test(t, func(t *testing.T) { checkScript(t, bytes) })
}

func FuzzBusOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, s []byte) {
		if len(s) > 2000 {
			return
		}
		play(t, s)
	})
}
