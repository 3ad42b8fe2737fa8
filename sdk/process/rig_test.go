package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// patient is how long a test waits for an event.
const patient = 20 * time.Second

// rig acts as the host of a plugin in the same process: calls are made without gRPC, all else goes through real rings,
// arenas and sockets.
type rig struct {
	t      *testing.T
	server *server
	arenas *arena.Set
	holder int
	wire   *shm.Socket
	link   *link.Link
	ports  []link.Port // that its data comes through
	loop   *loop.Loop
	ended  sync.WaitGroup

	in, out *ring.SPSC // the host's ends

	mu      sync.Mutex
	changed *sync.Cond
	got     map[int][]hostabi.Message // by signal
	control []hostabi.Message
	failed  []string
	exits   []int
	states  map[uint64]*os.File
}

// newRig serves a plugin.
func newRig(t *testing.T, p Plugin) *rig {
	t.Helper()
	r := &rig{t: t, arenas: arena.NewSet(), got: map[int][]hostabi.Message{}, states: map[uint64]*os.File{}}
	r.changed = sync.NewCond(&r.mu)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.holder, err = r.arenas.Grant()
	must(err)
	r.out, err = ring.New("to plugin", hostabi.LinkCells)
	must(err)
	r.in, err = ring.New("from plugin", hostabi.LinkCells)
	must(err)
	hostEnd, file, err := shm.Socketpair()
	must(err)
	pluginEnd, err := shm.NewSocket(file)
	must(err)
	pluginIn, err := ring.Open(dup(t, r.out.FD()))
	must(err)
	pluginOut, err := ring.Open(dup(t, r.in.FD()))
	must(err)
	r.wire = hostEnd
	r.server = makeServer(p, &ring.Pair{Out: pluginOut, In: pluginIn}, pluginEnd)
	r.server.exit = r.exit
	r.ended.Go(r.server.readWire)
	r.ended.Go(r.readWire)
	t.Cleanup(r.close)
	return r
}

func dup(t *testing.T, fd int) int {
	t.Helper()
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func (r *rig) exit(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exits = append(r.exits, status)
	r.changed.Broadcast()
}

// readWire is the host's end of the wire.
func (r *rig) readWire() {
	buf := make([]byte, native.MaxFrame)
	for {
		n, files, err := r.wire.Receive(buf)
		if err != nil {
			return
		}
		var f native.Frame
		if err := json.Unmarshal(buf[:n], &f); err != nil {
			r.t.Errorf("frame of the plugin: %v", err)
			return
		}
		if f.AddArena != nil {
			r.addArena(f.AddArena)
		}
		r.mu.Lock()
		switch {
		case f.State != nil:
			r.states[f.State.Call] = files[0]
		case f.Fail != nil:
			r.failed = append(r.failed, f.Fail.Reason)
		}
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

func (r *rig) addArena(f *native.AddArena) {
	sch, err := trajectory.DecodeSchema(f.Schema, f.BlockBytes)
	if err != nil {
		r.t.Error(err)
	}
	a, err := r.arenas.Add(arena.Config{Name: f.Name, Blocks: f.Blocks, BlockBytes: f.BlockBytes, Schema: sch})
	if err != nil {
		r.t.Error(err)
		return
	}
	r.announce(a, f.Call)
}

func (r *rig) announce(a *arena.Arena, call uint64) {
	sh := a.Share()
	r.send(native.Frame{Arena: &native.Arena{Call: call, ID: sh.ID, Name: sh.Name, Blocks: sh.Blocks,
		BlockBytes: sh.BlockBytes, ReadOnly: sh.ReadOnly, Schema: arena.Document(sh.Schema)}}, sh.WordsFD, sh.DataFD)
}

func (r *rig) send(f native.Frame, files ...int) {
	doc, err := json.Marshal(f)
	if err == nil {
		err = r.wire.Send(doc, files...)
	}
	if err != nil {
		r.t.Error(err)
	}
}

// call makes a control call.
func call[Out any](r *rig, method string, in any) (Out, error) {
	r.t.Helper()
	var out Out
	doc, err := json.Marshal(in)
	if err != nil {
		r.t.Fatal(err)
	}
	reply, err := r.server.call(context.Background(), method, doc)
	if err != nil {
		return out, err
	}
	if doc, err = json.Marshal(reply); err != nil {
		r.t.Fatal(err)
	}
	return out, json.Unmarshal(doc, &out)
}

// configure makes the component and the host's end of the link.
func (r *rig) configure(kind string, table map[string]any) {
	r.t.Helper()
	c := native.Configuration{
		Kind: kind, Name: kind, ID: 7, Index: 2, Count: 3, Holder: r.holder, Config: table,
		Run: native.Run{Name: "run", Seed: 42}, Peers: map[string]int{"rollout": 5}, Readers: map[string]int{"numbers": 9},
	}
	answer, err := call[native.Configured](r, native.MethodConfigure, c)
	if err != nil || len(answer.Errors) > 0 {
		r.t.Fatalf("Configure = %v, %v", answer.Errors, err)
	}
	r.join(r.server.plugin.Kinds[kind]().Manifest())
}

// join makes the host's end of the link.
func (r *rig) join(m component.Manifest) {
	r.t.Helper()
	r.loop = loop.New("host")
	var err error
	r.ports = linkPorts(m.Signals)
	r.link, err = link.New(link.Config{
		Name: "rig", Transport: &ring.Pair{Out: r.out, In: r.in}, Host: true, Sends: make([]link.Port, len(m.Slots)), Receives: r.ports,
		Arenas: r.arenas, Receiver: r.loop.NewReceiver("proxy"),
		Deliver: r.deliver, Control: r.controlled,
		Fault: func(err error) { r.t.Errorf("the plugin is at fault: %v", err) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.link.Start()
	r.ended.Go(func() { _ = r.loop.Run(context.Background()) })
}

// deliver keeps the received messages, with a claim on each block.
func (r *rig) deliver(port int, m *hostabi.Message) error {
	if m.Handle != 0 && !r.ports[port].OnLoan {
		if err := r.arenas.Retain(m.Handle); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[port] = append(r.got[port], *m)
	r.changed.Broadcast()
	return nil
}

func (r *rig) controlled(m *hostabi.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = append(r.control, *m)
	r.changed.Broadcast()
	return nil
}

// start configures and starts a component, and begins the run.
func (r *rig) start(kind string, table map[string]any) {
	r.t.Helper()
	r.configure(kind, table)
	if _, err := call[native.Empty](r, native.MethodStart, native.Empty{}); err != nil {
		r.t.Fatal(err)
	}
	r.run()
}

func (r *rig) run() { r.link.Post(hostabi.Message{Slot: hostabi.LinkRun}) }

// tell sends a message to a slot.
func (r *rig) tell(slot int, m hostabi.Message) {
	r.t.Helper()
	if err := r.link.Send(slot, &m); err != nil {
		r.t.Fatal(err)
	}
}

// until waits for a condition that the plugin's messages change.
func (r *rig) until(what string, come func() bool) {
	r.t.Helper()
	timer := time.AfterFunc(patient, func() { r.changed.Broadcast() })
	defer timer.Stop()
	end := time.Now().Add(patient)
	r.mu.Lock()
	defer r.mu.Unlock()
	for !come() {
		if time.Now().After(end) {
			r.t.Fatalf("no %s: got %v, control %v, failed %v", what, r.got, r.control, r.failed)
		}
		r.changed.Wait()
	}
}

// hear waits for the next message of a signal and takes it.
func (r *rig) hear(signal int) (m hostabi.Message) {
	r.t.Helper()
	r.until("message", func() bool { return len(r.got[signal]) > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	m, r.got[signal] = r.got[signal][0], r.got[signal][1:]
	return m
}

// closeStates waits for that many states and forgets them.
func (r *rig) closeStates(n int) {
	r.t.Helper()
	r.until("state", func() bool { return len(r.states) == n })
	r.locked(func() {
		for _, f := range r.states {
			_ = f.Close()
		}
	})
}

// locked runs fn while no message is handled.
func (r *rig) locked(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
}

// close ends both sides. No block may be held then.
func (r *rig) close() {
	if err := r.server.stop(); err != nil && !r.t.Failed() {
		r.t.Errorf("Stop = %v", err)
	}
	if r.link != nil {
		r.link.Stop()
		if err := r.link.Drain(); err != nil {
			r.t.Errorf("Drain = %v", err)
		}
		for _, p := range r.link.Unfinished() {
			if p.Claimed {
				_ = r.arenas.Release(p.Message.Handle)
			}
		}
		r.loop.Stop()
	}
	for signal, list := range r.got {
		for _, m := range list {
			if m.Handle != 0 && !r.ports[signal].OnLoan {
				_ = r.arenas.Release(m.Handle)
			}
		}
	}
	_ = r.wire.Close()
	r.ended.Wait()
	if err := errors.Join(r.server.envs.stop(), r.arenas.Close()); err != nil && !r.t.Failed() {
		r.t.Errorf("after the end: %v", err)
	}
}
