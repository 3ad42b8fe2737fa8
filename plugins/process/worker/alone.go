package worker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// alone is what a batch has whose environments are stepped one by one: a line of environments for each process, which a goroutine serves.
type alone struct {
	over  func(index int, err error)
	lines []*line
	serve sync.WaitGroup
}

// line is the environments of one process that are in steps, in the order in which they began.
type line struct {
	place int // of the process in the batch
	span  env.Span

	mu    sync.Mutex
	envs  []int         // indices in the batch
	steps []uint64      // that each environment of the process has begun
	since time.Time     // a step ended, or the first began
	begun chan struct{} // has a token when there may be environments
	ends  bool          // the batch is being closed
}

// StepsAlone says what to call at the end of steps; see env.Separate.
func (e *batch) StepsAlone(over func(index int, err error)) error {
	if !e.plugin.alone {
		return fmt.Errorf("%w: %s: %s steps all of its environments together", env.ErrUnsupported, e.options.Name, e.plugin.source.program.Name)
	}
	e.alone = &alone{over: over}
	for i, w := range e.workers {
		l := &line{place: i, span: w.span, steps: make([]uint64, w.span.Count), begun: make(chan struct{}, 1)}
		e.alone.lines = append(e.alone.lines, l)
		e.alone.serve.Go(func() {
			for range l.begun {
				e.attend(l)
			}
		})
	}
	return nil
}

// StepAlone begins a step of one environment; see env.Separate.
func (e *batch) StepAlone(t, index int) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckStep(e.rows, t); err != nil {
		return err
	}
	for _, l := range e.alone.lines {
		if at := index - l.span.First; at >= 0 && at < l.span.Count {
			e.sendAlone(l, t, at)
			return nil
		}
	}
	return e.noSuchEnv(index)
}

// sendAlone sends a step to a process. One that has died takes none: attend finds that.
func (e *batch) sendAlone(l *line, t, at int) {
	m := [1]hostabi.Message{{Slot: hostabi.LinkEnvStepAlone, T: uint32(t), Inline: [2]uint64{uint64(at)}}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.envs) == 0 {
		l.since = time.Now()
	}
	l.envs = append(l.envs, l.span.First+at)
	l.steps[at]++
	w := e.workers[l.place]
	for w.p.Transport.Put(m[:]) == 0 && !w.gone.Load() {
		w.p.Transport.WaitRoom(long)
	}
	select {
	case l.begun <- struct{}{}:
	default:
	}
}

// attend takes the answers of a process until none of its environments is in a step.
func (e *batch) attend(l *line) {
	for w := e.workers[l.place]; ; w = e.workers[l.place] {
		left, ok := l.left(e.plugin.source.step())
		if !ok {
			return
		}
		ended := w.gone.Load() // before looking: messages put before the end count
		n := w.p.Transport.Get(w.buffer[:])
		w.verdict = answered
		for i := 0; i < n && w.verdict == answered; i++ {
			e.hear(l, w, &w.buffer[i])
		}
		switch {
		case n > 0:
		case ended:
			w.verdict = died
		case w.p.Transport.IsShut():
			w.fail(errors.New("it has shut its ring"))
			w.verdict = broke
		case left <= 0:
			w.verdict = late
		default:
			w.p.Transport.Wait(left)
		}
		if w.verdict != answered {
			e.loseLine(l, w)
		}
	}
}

// left is the time that the process has for its next answer; ok is false where none is awaited.
func (l *line) left(limit time.Duration) (left time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.since.Add(limit)), len(l.envs) > 0
}

// hear handles a message of the process.
func (e *batch) hear(l *line, w *worker, m *hostabi.Message) {
	switch m.Slot {
	case hostabi.LinkEnvMetric:
		w.measure(m)
		return
	case hostabi.LinkAck:
		return
	}
	index := w.span.First + int(m.Inline[1]) - 1
	if m.Slot != hostabi.LinkEnvSteppedAlone || !l.take(index) {
		w.verdict = broke
		return
	}
	w.reply = *m
	e.alone.over(index, e.failed(l, w, index))
}

// failed is the error of a step that is over.
func (e *batch) failed(l *line, w *worker, index int) error {
	if w.reply.Kind == 0 {
		return nil
	}
	err := e.blame(w, hostabi.ExportStep, int(w.reply.T))
	if f := (*env.Fault)(nil); errors.As(err, &f) {
		l.mu.Lock()
		f.Step = l.steps[index-l.span.First]
		l.mu.Unlock()
	}
	if poisons(err) {
		e.gate.Poison()
	}
	return err
}

// take removes an environment from the line.
func (l *line) take(index int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.envs, index)
	if at < 0 {
		return false
	}
	l.envs, l.since = slices.Delete(l.envs, at, at+1), time.Now()
	return true
}

// loseLine ends the steps of a process that has died, or is killed now, and starts another in its place. Where no environment is in a step the
// next one to make a step finds that.
func (e *batch) loseLine(l *line, w *worker) {
	w.kill()
	if _, ok := l.left(0); !ok {
		return
	}
	err := e.lossOf(l, w)
	l.mu.Lock()
	lost := l.envs
	l.envs = nil
	l.mu.Unlock()
	for _, index := range lost {
		e.alone.over(index, err)
	}
}

func (e *batch) lossOf(l *line, w *worker) error {
	l.mu.Lock()
	unwanted, oldest := l.ends || e.options.Abandoned(), e.options.FirstEnv+l.envs[0]
	l.mu.Unlock()
	switch {
	case unwanted:
		e.gate.Poison()
		return e.newFault(env.FaultTrap, hostabi.ExportStep, -1, errUnwanted)
	case w.verdict == late:
		e.gate.Poison()
		return e.tooLong(w, hostabi.ExportStep, oldest)
	}
	f := e.newFault(env.FaultLost, hostabi.ExportStep, -1, w.ending())
	f.Lost = []env.Span{l.span}
	next, err := e.succeed(w)
	if err != nil {
		e.gate.Poison()
		return e.newFault(env.FaultTrap, hostabi.ExportStep, -1, fmt.Errorf("%w; and no other could be started in its place: %w", f.Err, err))
	}
	l.mu.Lock()
	e.workers[l.place] = next
	l.mu.Unlock()
	return f
}

// end ends what serves the lines. Processes that are in steps are killed.
func (a *alone) end(e *batch) {
	if a == nil {
		return
	}
	for _, l := range a.lines {
		l.mu.Lock()
		if l.ends = true; len(l.envs) > 0 {
			e.workers[l.place].p.Kill()
		}
		l.mu.Unlock()
		close(l.begun)
	}
	a.serve.Wait()
}
