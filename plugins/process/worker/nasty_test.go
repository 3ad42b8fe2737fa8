package worker

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
)

// nastyStep is the step in which each nasty process misbehaves.
const nastyStep = 3

// nasty is a plugin whose environments break the protocol behind the back of the SDK.
type nasty struct {
	*plugintest.Plugin
	how string
}

type nastyEnv struct {
	env.Env
	how   string
	block env.Block
	steps int
}

func (p nasty) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &nastyEnv{Env: e, how: p.how}, err
}

func (e *nastyEnv) Bind(b env.Block) error {
	e.block = b
	return e.Env.Bind(b)
}

func (e *nastyEnv) Step(t int) error {
	if e.steps++; e.steps != nastyStep {
		return e.Env.Step(t)
	}
	nastyWays()[e.how].do(e)
	return e.Env.Step(t)
}

// secondEnd opens the ring to the host once more.
func secondEnd() *ring.SPSC {
	fd, err := unix.Dup(native.FDOut)
	if err != nil {
		panic(err)
	}
	r, err := ring.Open(fd)
	if err != nil {
		panic(err)
	}
	return r
}

// putNasty puts messages and then does nothing more, so that they are not overwritten.
func putNasty(ms ...hostabi.Message) {
	secondEnd().Put(ms)
	select {}
}

// scribble fills shared memory with noise.
func scribble(b []byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
}

// wireNow finds the wire, which the SDK has moved.
func wireNow() int {
	for fd := native.FDWire; fd < 100; fd++ {
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil && kind == unix.SOCK_SEQPACKET {
			return fd
		}
	}
	panic("no wire")
}

// sends returns a function that sends frames on the wire and does not answer: the host has to find out by them.
func sends(times int, doc string, files ...int) func(*nastyEnv) {
	return func(*nastyEnv) {
		var rights []byte
		if len(files) > 0 {
			rights = unix.UnixRights(files...)
		}
		for range times {
			if err := unix.Sendmsg(wireNow(), []byte(doc), rights, nil, 0); err != nil {
				panic(err)
			}
		}
		rig.Sleep()
	}
}

// nastyWay is something that a process does, and the words of the fault that the host makes of it.
type nastyWay struct {
	do   func(*nastyEnv)
	want string
}

func nastyWays() map[string]nastyWay {
	reply := hostabi.Message{Slot: hostabi.LinkEnvReply}
	failed := hostabi.Message{Slot: hostabi.LinkEnvReply, Kind: math.MaxUint16, Split: 77, Inline: [2]uint64{1 << 60, 1 << 60}}
	return map[string]nastyWay{
		"slot":        {func(*nastyEnv) { putNasty(hostabi.Message{Slot: 3}) }, "nonsense into its ring"},
		"two-replies": {func(*nastyEnv) { putNasty(reply, reply) }, "nonsense into its ring"},
		"numbers":     {func(*nastyEnv) { putNasty(failed) }, "status in rl_step"}, // and hangs in the next call
		"exits":       {func(*nastyEnv) { os.Exit(5) }, "ended with status 5"},
		"panics":      {func(*nastyEnv) { panic("an index out of range") }, "trap in rl_step at step 3: panic: an index out of range"},
		"shuts":       {func(*nastyEnv) { secondEnd().Shut(); select {} }, "shut its ring"},
		"ring": {func(*nastyEnv) {
			mem, err := unix.Mmap(native.FDOut, 0, hostabi.RingHeaderBytes+1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				panic(err)
			}
			scribble(mem)
			select {}
		}, ""},
		"metrics": {func(*nastyEnv) {
			ms := make([]hostabi.Message, hostabi.LinkCells/2)
			for i := range ms {
				ms[i] = hostabi.Message{Slot: hostabi.LinkEnvMetric, T: rand.Uint32(), Inline: [2]uint64{rand.Uint64()}}
			}
			secondEnd().Put(ms)
			os.Exit(0)
		}, "process"},
		"document":    {sends(1, "no document"), "a frame on its wire"},
		"empty-frame": {sends(1, "{}"), "workers of environments do not send"},
		"arena":       {sends(1, `{"add_arena":{"call":1,"blocks":-1}}`), "workers of environments do not send"},
		"fails":       {sends(1, `{"fail":{"reason":"out of coffee"}}`), "out of coffee"},
		"metric-name": {sends(1, `{"metric":{"number":1,"name":"`+strings.Repeat("x", 1000)+`"}}`), "a name has 1 to"},
		"states":      {sends(2, `{"state":{"call":9,"bytes":1}}`, native.FDIn), "a state that nobody has asked for"},
	}
}

// Whatever a process writes to its ring and its wire, the host considers the process dead or its call failed; everything afterwards works.
func TestNasty_NothingThatAWorkerWritesHurtsTheHost(t *testing.T) {
	for how, way := range nastyWays() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := loadIn(t, 2, env.Source{Use: "nasty:" + how, Limits: env.Limits{Step: time.Second, Init: 2 * time.Second}})
			s := newStage(t, p, 4)
			var err error
			for range nastyStep {
				if err == nil {
					err = s.next()
				}
			}
			var f *env.Fault
			if !errors.As(err, &f) || !strings.Contains(err.Error(), way.want) {
				t.Errorf("%v, want a fault with %q", err, way.want)
			}
			if err := errors.Join(s.Env.Renew(), s.Bind(), s.Reset(nil, s.seeds()), s.next()); err != nil {
				t.Errorf("after Renew: %v", err)
			}
		})
	}
}

func TestScratch_RefusesAreasThatDoNotFit(t *testing.T) {
	good := native.EnvScratch{SeedsAt: 0, MaskAt: 32, TextAt: 64, Text: 100, Bytes: 164}
	if err := checkScratch(&good, 4); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*native.EnvScratch){
		func(s *native.EnvScratch) { s.Bytes = 0 }, func(s *native.EnvScratch) { s.Bytes = math.MaxInt },
		func(s *native.EnvScratch) { s.MaskAt = 161 }, func(s *native.EnvScratch) { s.MaskAt = -1 },
		func(s *native.EnvScratch) { s.SeedsAt = 140 }, func(s *native.EnvScratch) { s.SeedsAt = math.MaxInt - 3 },
		func(s *native.EnvScratch) { s.Text = 101 }, func(s *native.EnvScratch) { s.Text = math.MinInt },
		func(s *native.EnvScratch) { s.TextAt = math.MaxInt }, func(s *native.EnvScratch) { s.Text = -1 },
	} {
		bad := good
		change(&bad)
		if err := checkScratch(&bad, 4); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// FuzzSplit looks for snapshots that are read beyond their end.
func FuzzSplit(f *testing.F) {
	e := &batch{workers: make([]*worker, 2)}
	f.Add([]byte(stateMagic + "\x02\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "abc"))
	f.Add([]byte(stateMagic + "\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("rlwasm1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := e.split(b)
		if err == nil && (len(parts) != 2 || len(parts[0])+len(parts[1]) != len(b)-len(stateMagic)-4-16) {
			t.Errorf("%d parts of %q", len(parts), b)
		}
	})
}
