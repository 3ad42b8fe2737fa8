package worker

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// worker is one process that works environments. It belongs to the goroutine that calls the batch, except for the
// fields that the wire's goroutine sets.
type worker struct {
	source *source
	name   string // of the component
	p      *spawn.Process
	mail   *mailbox
	states *spawn.States                 // that came over the wire
	own    atomic.Pointer[spawn.Process] // p, for the wire's goroutine

	span    env.Span // its environments within the batch
	options env.Options
	layout  native.EnvScratch
	scratch *shm.Segment
	known   map[uint64]bool // numbers of files that it knows

	making   making
	again    bool // it can make other environments
	weighing sync.WaitGroup
	unweigh  context.CancelFunc // ends the look at its memory; nil before that begins
	needed   func() bool        // ends the watch for the end of env.Options.Wanted; nil before that begins
	gone     atomic.Bool        // its process has ended
	selected bool               // takes part in the call
	before   uint64             // environments that were done when the call was posted
	done     uint64             // and when they were last looked at
	verdict  verdict            // on its answer
	reply    hostabi.Message
	one      [1]hostabi.Message
	buffer   [32]hostabi.Message
}

// verdict is the outcome of a message.
type verdict uint8

const (
	answered verdict = iota
	died             // the process has ended
	late             // it has not answered in time
	broke            // it has answered with nonsense
)

// maxScratch bounds a worker's scratch area.
const maxScratch = 64 << 20

// startWorker starts a process.
func (s *source) startWorker(ctx context.Context, name string) (*worker, error) {
	w := &worker{source: s, name: name, mail: newMailbox(), states: spawn.NewStates(maxEnvState), known: map[uint64]bool{}}
	program := s.program
	if program.Name == "" {
		program.Name = s.Name
	}
	log := s.runtime.Log().With("component", cmp.Or(name, s.Name, s.Use))
	if s.Name != "" {
		log = log.With("env", s.Name)
	}
	var err error
	w.p, err = s.runtime.Start(ctx, program, spawn.StartOptions{
		Name: name, Log: log, Handle: w.handle, Broken: w.fail,
	})
	if err != nil {
		return nil, err
	}
	if w.own.Store(w.p); w.mail.broken() != nil {
		w.p.Kill()
	}
	go func(process *spawn.Process) {
		<-process.Died()
		w.gone.Store(true)
		process.Transport.Nudge()
		w.mail.wake()
	}(w.p)
	return w, nil
}

// make tells the process to make its environments.
func (w *worker) make(ctx context.Context, o env.Options, blockEnvs int, span env.Span) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.p.Program.Start+w.source.loading(), spawn.ErrSlow)
	defer cancel()
	w.span, w.options = span, o
	w.making.begin(o.Made, span.Count)
	err := w.p.Call(ctx, native.MethodEnvMake, native.EnvBatch{
		Name: o.Name, Envs: span.Count, FirstEnv: o.FirstEnv + span.First, Autoreset: uint32(o.Autoreset), Seed: native.U64(o.Seed),
		FirstColumn: span.First, BlockEnvs: blockEnvs,
	}, &w.layout)
	if err != nil {
		return err
	}
	w.making.reach(span.Count)
	if err := checkScratch(&w.layout, span.Count); err != nil {
		return w.protocolError(err)
	}
	if w.scratch, err = shm.Create("rlhost: environments", w.layout.Bytes); err != nil {
		return err
	}
	return w.p.Wire.Send(native.Frame{File: &native.File{Bytes: int64(w.scratch.Size())}}, w.scratch.FD())
}

// checkScratch refuses areas that are too small for their contents.
func checkScratch(s *native.EnvScratch, envs int) error {
	within := func(at, n int) bool { return at >= 0 && n >= 0 && at <= s.Bytes && n <= s.Bytes-at }
	if s.Bytes < 1 || s.Bytes > maxScratch || !within(s.MaskAt, envs) || !within(s.SeedsAt, 8*envs) || !within(s.TextAt, s.Text) || !within(s.DoneAt, 8) {
		return fmt.Errorf("its scratch area %+v has no room for %d environments", *s, envs)
	}
	return nil
}

func (w *worker) protocolError(err error) error {
	return &spawn.Error{Code: spawn.CodeProtocol, Program: w.p.Program.Name, Reason: err.Error(), Err: err}
}

// handle takes a frame of the process. It runs on the wire's goroutine.
func (w *worker) handle(f *native.Frame, files []*os.File) {
	err := errors.New("a frame on its wire that workers of environments do not send")
	switch {
	case f.State != nil && len(files) == 1:
		err = w.states.Put(*f.State, files[0])
		files = nil
	case f.Metric != nil:
		err = w.mail.putMetric(*f.Metric)
	case f.Stats != nil:
		err = nil // a worker's other numbers are not kept
		w.making.reach(int(min(f.Stats.Counters[native.CounterEnvsMade], math.MaxInt32)))
	case f.Fail != nil:
		err = errors.New(f.Fail.Reason)
	}
	_ = spawn.CloseFiles(files) // the sender has its own
	if err != nil {
		w.fail(err)
	}
}

// fail ends a process that breaks the protocol. It may be called while the process is being started.
func (w *worker) fail(err error) {
	w.mail.fail(err)
	if p := w.own.Load(); p != nil {
		p.Kill()
	}
}

// announce sends a file.
func (w *worker) announce(number uint64, b env.Block, size int64) error {
	err := w.p.Wire.Send(native.Frame{File: &native.File{
		Number: number, Bytes: size, Schema: b.Schema.Document(),
	}}, b.FD)
	if err != nil {
		return fmt.Errorf("%s: announce block %d: %w", w.name, b.Index, err)
	}
	w.known[number] = true
	return nil
}

// prepare writes masks and seeds to the scratch area and reports whether the reset concerns this process.
func (w *worker) prepare(mask []uint8, seeds []uint64) bool {
	first, next := w.span.First, w.span.First+w.span.Count
	area := w.scratch.Bytes()
	if mask != nil {
		if !slices.ContainsFunc(mask[first:next], func(m uint8) bool { return m != 0 }) {
			return false
		}
		copy(area[w.layout.MaskAt:], mask[first:next])
	}
	if seeds != nil {
		for i, seed := range seeds[first:next] {
			binary.LittleEndian.PutUint64(area[w.layout.SeedsAt+8*i:], seed)
		}
	}
	return true
}

// post sends a message. There is room, because there is one message at a time.
func (w *worker) post(m *hostabi.Message) {
	w.one[0] = *m
	w.verdict = answered
	w.before = w.count()
	w.done = w.before
	if n := w.p.Transport.Get(w.buffer[:]); n > 0 && w.take(w.buffer[:n]) {
		w.verdict = broke // an answer to nothing
	}
	if w.p.Transport.Put(w.one[:]) == 0 {
		w.verdict = broke
	}
}

// count is how many environments the process has reset and stepped; 0 if it does not say.
func (w *worker) count() uint64 {
	if w.layout.DoneAt == 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(w.scratch.Bytes()[w.layout.DoneAt:])
}

// advances reports whether an environment was done since the last look: the limit is then for the next one. A process that counts more than
// it has gets no time for that.
func (w *worker) advances() bool {
	now := w.count()
	moved := now > w.done && now-w.before <= uint64(w.span.Count)
	w.done = now
	return moved
}

// hangs is the global index of the environment that has not come back; -1 if the process does not say.
func (w *worker) hangs() int {
	if w.layout.DoneAt == 0 {
		return -1
	}
	return w.envOf(w.count() - w.before + 1)
}

// await waits for the answer to the posted call, or until the process has died, or for so long nothing is done that the time is up.
func (w *worker) await(until time.Time) {
	for w.verdict == answered {
		ended := w.gone.Load() // before looking: messages put before the end count
		n := w.p.Transport.Get(w.buffer[:])
		if n > 0 && w.take(w.buffer[:n]) {
			return
		}
		switch {
		case n > 0:
		case ended:
			w.verdict = died
		case w.p.Transport.IsShut():
			w.fail(errors.New("it has shut its ring"))
			w.verdict = broke
		default:
			left := time.Until(until)
			if left <= 0 && w.advances() {
				until = time.Now().Add(w.source.step())
				continue
			}
			if left <= 0 {
				w.verdict = late
				break
			}
			w.p.Transport.Wait(left)
		}
	}
	w.kill()
}

// kill ends the process after a verdict that is not an answer.
func (w *worker) kill() {
	if w.verdict == late {
		w.p.Abort() // it says where it is
	} else if w.verdict != died {
		w.p.Kill()
	}
	if w.verdict != died {
		<-w.p.Died()
		w.gone.Store(true)
	}
}

// take handles messages of the process and reports whether the last is the answer.
func (w *worker) take(ms []hostabi.Message) bool {
	for i := range ms {
		switch m := &ms[i]; m.Slot {
		case hostabi.LinkEnvReply:
			w.reply = *m
			if i < len(ms)-1 {
				w.verdict = broke
			}
			return i == len(ms)-1
		case hostabi.LinkEnvMetric:
			w.measure(m)
		case hostabi.LinkAck:
		default:
			w.verdict = broke
			return false
		}
	}
	return false
}

// measure passes a number on. Its name comes another way, and was sent before.
func (w *worker) measure(m *hostabi.Message) {
	if w.options.Metric == nil || m.Inline[1] > uint64(w.span.Count) {
		return
	}
	name, err := w.mail.metric(m.T, w.gone.Load)
	if err != nil {
		if !errors.Is(err, spawn.ErrDied) { // await sees that itself
			w.fail(err)
		}
		return
	}
	index := -1
	if m.Inline[1] > 0 {
		index = w.span.First + int(m.Inline[1]) - 1
	}
	w.options.Metric(env.Metric{Env: index, Name: name, Value: math.Float64frombits(m.Inline[0]), Gather: hostabi.TensorFlags(m.Split) & hostabi.TensorGather})
}

// text returns the words of a reply, which begin at a place of their room.
func (w *worker) text(at int) string {
	at = min(at, w.layout.Text)
	n := min(w.reply.Inline[0], uint64(w.layout.Text-at))
	text := string(w.scratch.Bytes()[w.layout.TextAt+at:][:n])
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

// envOf returns the global index of an environment that a reply names: 0 is none, 1 the first.
func (w *worker) envOf(index uint64) int {
	if index == 0 || index > uint64(w.span.Count) {
		return -1
	}
	return w.options.FirstEnv + w.span.First + int(index) - 1
}

// ending says how the process ended.
func (w *worker) ending() error {
	err := w.mail.broken()
	if err == nil && w.verdict == broke {
		err = errors.New("it wrote nonsense into its ring")
	}
	if err != nil {
		return fmt.Errorf("process %d was killed: %w", w.p.PID(), err)
	}
	return fmt.Errorf("process %d %s", w.p.PID(), w.p.End())
}

// end ends the process and releases its resources.
func (w *worker) end() error {
	left := w.leave()
	if !w.gone.Load() {
		_ = w.p.Stop(w.source.runtime.Grace()) // its answer changes nothing
	}
	w.states.Close()
	return errors.Join(left, w.p.Close())
}

// leave ends what the process does for its batch.
func (w *worker) leave() (err error) {
	if w.needed != nil {
		w.needed()
		w.unweigh()
		w.weighing.Wait()
	}
	if w.scratch != nil {
		err = w.scratch.Close()
	}
	w.needed, w.scratch, w.known, w.layout = nil, nil, map[uint64]bool{}, native.EnvScratch{}
	return err
}

// state makes one call that is not on the step path, with a state to send or one to get.
func (w *worker) state(c native.EnvStateCall, send []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), w.source.init(), spawn.ErrSlow)
	defer cancel()
	if c.State != nil {
		if err := w.p.Wire.SendState(*c.State, send); err != nil {
			return nil, err
		}
	}
	var size native.StateSize
	err := w.p.Call(ctx, native.MethodEnvState, c, &size)
	if err != nil {
		return nil, w.refusal(err)
	}
	if c.Do != "snapshot" && c.Do != "save" && c.Do != doAsk && c.Do != doRender {
		return nil, nil
	}
	state, err := w.states.Take(size, w.p.Died())
	if broken := w.mail.broken(); err != nil && broken != nil {
		err = broken // it has died of that
	}
	return state, err
}

// refusal makes an error of a worker's answer to a call about states: env.ErrUnsupported, a Fault of kind Status,
// or any other, after which the state of the environments is unknown.
func (w *worker) refusal(err error) error {
	var e *spawn.Error
	if !errors.As(err, &e) {
		return err
	}
	switch code, words := e.Refusal(); code {
	case native.CodeUnsupported:
		return fmt.Errorf("%w: %s", env.ErrUnsupported, strings.TrimPrefix(words, env.ErrUnsupported.Error()+": "))
	case native.CodeOrder:
		return &env.Fault{Kind: env.FaultStatus, Err: errors.New(words)}
	}
	return err
}
