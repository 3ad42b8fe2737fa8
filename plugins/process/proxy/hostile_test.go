package proxy

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
)

// villain is a hostile plugin without an SDK that has everything a plugin gets.
type villain struct {
	wire    *shm.Socket
	in, out *ring.SPSC
	arenas  []*arena.Arena
	raw     [][]byte // words of the arenas, data of the arenas, as mapped
	random  *rand.Rand
	started chan struct{}
}

// mischief is a villain's deed once its component has been started.
type mischief struct {
	name string
	does func(v *villain)
	// restarts: the host has to replace the process; else it drops the messages and counts them.
	restarts bool
	boundary bool // it is about dataset boundaries
	quiet    bool // it ends by itself
	// answers replace the control service's.
	answers rig.Answers
}

func mischiefs() []mischief {
	return []mischief{
		{name: "messages of random bits", restarts: true, does: (*villain).randomMessages},
		{name: "a signal that there is not", restarts: true, does: func(v *villain) { v.put(hostabi.Message{Signal: 99}) }},
		{name: "an unknown control message", restarts: true, does: func(v *villain) { v.put(hostabi.Message{Slot: 0xFFFE}) }},
		{name: "a control message of the host", restarts: true, does: func(v *villain) { v.put(hostabi.Message{Slot: hostabi.LinkBoundaryOver}) }},
		{name: "a stop for no reason", restarts: true, does: func(v *villain) { v.put(hostabi.Message{Slot: hostabi.LinkStop, Kind: 77}) }},
		{name: "a boundary within a boundary", restarts: true, boundary: true, does: func(v *villain) {
			for range 1000 {
				v.put(hostabi.Message{Slot: hostabi.LinkBoundary})
			}
		}},
		{name: "dies within a boundary", restarts: true, boundary: true, quiet: true, does: func(v *villain) {
			v.put(hostabi.Message{Slot: hostabi.LinkBoundary})
			v.put(hostabi.Message{Signal: 1, Handle: 1})
			os.Exit(1)
		}},
		{name: "speaks within a boundary, and sends no state", restarts: true, boundary: true, does: func(v *villain) {
			v.put(hostabi.Message{Slot: hostabi.LinkBoundary})
			v.randomHandles()
			v.put(hostabi.Message{Slot: hostabi.LinkStop, Kind: hostabi.LinkStopWall})
		}},
		{name: "a boundary that the host is through with", restarts: true, boundary: true, does: func(v *villain) {
			v.put(hostabi.Message{Slot: hostabi.LinkBoundary})
			v.put(hostabi.Message{Slot: hostabi.LinkBoundaryOver})
		}},
		{name: "acknowledges what was never sent", restarts: true, does: func(v *villain) { v.put(hostabi.Message{Slot: hostabi.LinkAck, Ctl: 1 << 40}) }},
		{name: "handles of everything", does: (*villain).randomHandles},
		{name: "credits of everything", does: func(v *villain) {
			for range 1000 {
				v.put(hostabi.Message{Slot: hostabi.LinkCredit, Handle: v.handle()})
			}
			v.put(hostabi.Message{Signal: 1, Handle: 1}) // rejected, so that the host is seen to have got so far
		}},
		{name: "a header of random bits", restarts: true, does: (*villain).randomHeaders},
		{name: "garbage on the wire", restarts: true, does: func(v *villain) { _ = v.wire.Send([]byte("{garbage")) }},
		{name: "a frame of the host", restarts: true, does: func(v *villain) { v.frame(native.Frame{Failed: &native.Failed{}}) }},
		{name: "an empty frame", restarts: true, does: func(v *villain) { v.frame(native.Frame{}) }},
		{name: "a frame that is too large", restarts: true, does: func(v *villain) { _ = v.wire.Send(make([]byte, native.MaxFrame+1)) }},
		{name: "metrics without end", restarts: true, does: (*villain).metrics},
		{name: "states that nobody asked for", restarts: true, does: func(v *villain) {
			for i := range uint64(20) {
				v.frame(native.Frame{State: &native.StateSize{Call: i}}, 4)
			}
		}},
		{name: "a state that is no memory file", restarts: false, does: (*villain).falseState, answers: rig.Answers{
			native.MethodSnapshot: native.StateSize{Call: 7, Bytes: 1 << 40},
		}},
		{name: "arenas of all sizes", does: (*villain).manyArenas},
		{name: "words of random bits", restarts: true, does: (*villain).scribble},
		{name: "does not read its wire and asks for ever", restarts: true, does: func(v *villain) {
			for i := range uint64(1 << 20) {
				v.frame(native.Frame{AddArena: &native.AddArena{Call: i + 1, Name: "x", Blocks: -1}})
			}
		}},
	}
}

// playHostile does mischief in its first session and is the probe in every other.
func playHostile(name, mark string) {
	if _, err := os.Stat(mark); err == nil {
		serveProbe()
		return
	}
	v := &villain{random: rand.New(rand.NewPCG(uint64(os.Getpid()), 0)), started: make(chan struct{})}
	manifest := plugintest.NewProbe().Manifest()
	kind := native.Kind{Name: "probe", Signals: portsOf(manifest.Signals), Slots: portsOf(manifest.Slots)}
	for _, m := range mischiefs() {
		if m.name != name {
			continue
		}
		a := rig.Answers{}
		for method, answer := range m.answers {
			a[method] = answer
		}
		a[native.MethodDescribe] = native.Description{ABI: native.ABI, Capabilities: []string{native.CapSnapshot}, Kinds: []native.Kind{kind}}
		a[native.MethodStart] = func() any {
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				panic(err)
			}
			close(v.started)
			return nil
		}
		go func() {
			<-v.started
			v.prepare()
			m.does(v)
			select {}
		}()
		rig.Serve(native.Version, a)
		return
	}
	panic("no mischief " + name)
}

func portsOf(list []component.Port) []native.Port {
	var out []native.Port
	for _, p := range list {
		out = append(out, native.Port{Name: p.Name, Payload: p.Payload, Doc: p.Doc, OnLoan: p.OnLoan, Schema: native.U64(p.Schema)})
	}
	return out
}

// prepare opens the inherited files of the process.
func (v *villain) prepare() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var err error
	v.wire, err = shm.NewSocket(os.NewFile(native.FDWire, "wire"))
	must(err)
	fd, err := unix.Dup(native.FDIn)
	must(err)
	v.in, err = ring.Open(fd)
	must(err)
	fd, err = unix.Dup(native.FDOut)
	must(err)
	v.out, err = ring.Open(fd)
	must(err)
	buf := make([]byte, native.MaxFrame)
	for {
		must(v.wire.SetReceiveDeadline(time.Now().Add(200 * time.Millisecond)))
		n, files, err := v.wire.Receive(buf)
		if err != nil {
			return
		}
		var f native.Frame
		must(json.Unmarshal(buf[:n], &f))
		if f.Arena == nil {
			continue
		}
		var dups [2]int
		for i, file := range files {
			var st unix.Stat_t
			must(unix.Fstat(int(file.Fd()), &st))
			mem, err := unix.Mmap(int(file.Fd()), 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			must(err)
			v.raw = append(v.raw, mem)
			dups[i], err = unix.Dup(int(file.Fd()))
			must(err)
		}
		a, err := arena.Attach(arena.Shared{ID: f.Arena.ID, Name: f.Arena.Name, Blocks: f.Arena.Blocks,
			BlockBytes: f.Arena.BlockBytes, WordsFD: dups[0], DataFD: dups[1]}, 1)
		must(err)
		v.arenas = append(v.arenas, a)
	}
}

func (v *villain) put(m hostabi.Message) {
	for v.out.Put([]hostabi.Message{m}) == 0 {
		v.out.WaitRoom(time.Second)
	}
}

func (v *villain) frame(f native.Frame, files ...int) {
	doc, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	_ = v.wire.Send(doc, files...) // the host may have had enough
}

func (v *villain) randomMessages() {
	for range 10000 {
		v.put(hostabi.Message{
			Ctl: v.random.Uint64() >> v.random.IntN(64), Signal: uint16(v.random.IntN(6)), Slot: uint16(v.random.Uint32()) >> v.random.IntN(16),
			Sender: uint16(v.random.Uint32()), Handle: v.handle(), T: v.random.Uint32(),
		})
	}
}

// handle returns a handle that may mean anything.
func (v *villain) handle() hostabi.Handle {
	switch v.random.IntN(3) {
	case 0:
		return hostabi.Handle(v.random.Uint64())
	case 1:
		return hostabi.MakeHandle(uint8(v.random.IntN(4)), uint32(v.random.IntN(64)), uint64(v.random.IntN(8)))
	default:
		return 0
	}
}

func (v *villain) randomHandles() {
	for range 800 { // within the window
		v.put(hostabi.Message{Signal: uint16(1 + v.random.IntN(3)), Handle: v.handle(), T: uint32(v.random.IntN(4)), Sender: 77})
	}
}

// randomHeaders scribbles on the rings, and then says something that must be dealt with.
func (v *villain) randomHeaders() {
	for _, fd := range []int{native.FDIn, native.FDOut} {
		mem, err := unix.Mmap(fd, 0, hostabi.RingHeaderBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		for range 100 {
			for i := range mem {
				mem[i] = byte(v.random.Uint32())
			}
		}
	}
	v.frame(native.Frame{})
}

func (v *villain) metrics() {
	for i := range 1000 {
		counters := map[string]uint64{}
		for k := range 20 {
			counters[strings.Repeat("x", i%100)+string(rune('a'+k))+strings.Repeat("y", i/100)] = v.random.Uint64()
		}
		v.frame(native.Frame{Stats: &native.Stats{Counters: counters}})
	}
}

func (v *villain) falseState() {
	r, _, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	v.frame(native.Frame{State: &native.StateSize{Call: 7, Bytes: 1 << 40}}, int(r.Fd()))
	v.put(hostabi.Message{Signal: 1, Handle: 1})
}

func (v *villain) manyArenas() {
	for i, size := range []int{0, -1, 1 << 40, 1 << 62, 4096, -1 << 63} {
		for k, blocks := range []int{0, -1, 1 << 40, 1 << 20, 1 << 62} {
			v.frame(native.Frame{AddArena: &native.AddArena{Call: uint64(i*10 + k + 1), Name: "a", Blocks: blocks, BlockBytes: size,
				Schema: &native.Schema{Kind: "trajectory", Steps: -1}}})
		}
	}
	v.frame(native.Frame{AddArena: &native.AddArena{Call: 99, Name: strings.Repeat("n", 5000), Blocks: 1, BlockBytes: 1}})
	v.put(hostabi.Message{Signal: 1, Handle: 1})
}

// scribble writes over the words of all arenas while the host works with them.
func (v *villain) scribble() {
	for range 200 {
		for _, mem := range v.raw {
			for range 500 {
				mem[v.random.IntN(len(mem))] = byte(v.random.Uint32())
			}
		}
		time.Sleep(time.Millisecond)
	}
	v.frame(native.Frame{})
}

// A hostile plugin is replaced by a friendly one, in synchronous mode too: there the host acts on a dataset boundary later, while the
// process waits.
func TestFault_HostilePlugin(t *testing.T) {
	for i, m := range mischiefs() {
		t.Run(m.name, func(t *testing.T) { meetVillain(t, m, false) })
		t.Run(m.name+", synchronously", func(t *testing.T) {
			if os.Getenv("RLHOST_HOSTILE") == "" && i%5 > 0 && !m.boundary {
				t.Skip("make test-hostile")
			}
			meetVillain(t, m, true)
		})
	}
}

// meetVillain lets a plugin do its mischief, and then looks whether the host is as it should be.
func meetVillain(t *testing.T, m mischief, synchronous bool) {
	mark := filepath.Join(t.TempDir(), "mark")
	p := restless(spawntest.Self(t, "hostile", m.name, mark))
	p.Stall = 2 * time.Second
	c := newProbe(t, p)
	press := newPressIn(t, c, synchronous)
	rejected := press.Host.Stats.Counter("process/rejected_messages/press")
	restarts := press.Host.Stats.Counter("process/restarts/press")
	testkit.Until(t, "the fault is counted", func() bool {
		if m.restarts {
			return restarts.Value() > 0
		}
		return rejected.Value() > 0
	})
	if m.answers != nil {
		press.OnLoop(func() {
			if _, err := c.Snapshot(); err == nil {
				t.Error("the host took a state that is none")
			}
		})
	}
	if !m.restarts {
		if n := restarts.Value(); n > 0 {
			t.Errorf("%d restarts; log:\n%s", n, press.Log())
		}
		press.Kill()
	}
	if !m.quiet && m.restarts != (strings.Contains(press.Log(), "broke the protocol") || strings.Contains(press.Log(), "no sign of life")) {
		t.Errorf("log:\n%s", press.Log())
	}
	for i := range 50 { // the next session is a good one
		press.turn(i)
	}
	press.Until("a block of the good session", func() bool { return press.made.Load() > 0 })
	press.quiet()
	if press.torn.Load()+press.wrong.Load()+press.stale.Load() > 0 {
		t.Errorf("%d blocks made, %d torn, %d wrong, %d stale", press.made.Load(), press.torn.Load(), press.wrong.Load(), press.stale.Load())
	}
}
