package worker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// isLost reports whether an error is a fault of kind Lost.
func isLost(err error) bool {
	var f *env.Fault
	return errors.As(err, &f) && f.Kind == env.FaultLost
}

// judge makes one error of the faults in a call. A fault that poisons comes first: it costs the whole batch, dead processes included.
func (e *batch) judge(call string) error {
	var worst error
	var lost []env.Span
	var why error
	for _, w := range e.workers {
		if !w.selected {
			continue
		}
		switch {
		case w.verdict == died || w.verdict == broke:
			lost = append(lost, w.span)
			if why == nil {
				why = w.ending()
			} else {
				why = fmt.Errorf("%w; %w", why, w.ending())
			}
		case w.verdict == late:
			worst = worse(worst, e.tooLong(w, call, w.hangs()))
		case w.reply.Kind != 0:
			worst = worse(worst, e.blame(w, call, 0))
		}
	}
	if e.options.Abandoned() {
		e.gate.Poison()
		return e.newFault(env.FaultTrap, call, -1, errUnwanted)
	}
	if worst != nil {
		if len(lost) > 0 || poisons(worst) {
			e.gate.Poison()
		}
		return worst
	}
	f := e.newFault(env.FaultLost, call, -1, why)
	f.Lost = lost
	// A worker that has answered and died since is lost in the next call: this one cannot report it any more.
	if err := e.replace(func(w *worker) bool { return w.selected && w.verdict != answered }); err != nil {
		e.gate.Poison()
		return e.newFault(env.FaultTrap, call, -1, fmt.Errorf("%w; and no other could be started in its place: %w", f.Err, err))
	}
	return f
}

// tooLong is the fault of a process that has not answered in time.
func (e *batch) tooLong(w *worker, call string, index int) *env.Fault {
	first := e.options.FirstEnv + w.span.First
	return e.newFault(env.FaultDeadline, call, index, fmt.Errorf("process %d (environments %d to %d) did not answer within %v and was killed%s",
		w.p.PID(), first, first+w.span.Count-1, e.plugin.source.step(), w.p.LastWords()))
}

// errUnwanted is why the processes of an abandoned batch were killed.
var errUnwanted = errors.New("the processes were killed: nobody waits for them any more")

// worse returns the error that costs more.
func worse(a, b error) error {
	if a == nil || poisons(b) && !poisons(a) {
		return b
	}
	return a
}

func poisons(err error) bool {
	var f *env.Fault
	return errors.As(err, &f) && f.Poisons()
}

// blame makes an error of a reply, whose words begin at a place of their room.
func (e *batch) blame(w *worker, call string, at int) error {
	text := w.text(at)
	kind := env.FaultStatus
	switch w.reply.Split {
	case hostabi.LinkEnvFaultRefused:
		return fmt.Errorf("%w: %s", env.ErrUnsupported, text)
	case hostabi.LinkEnvFaultTrap:
		kind = env.FaultTrap
	case hostabi.LinkEnvFaultDeadline:
		kind = env.FaultDeadline
	case hostabi.LinkEnvFaultMemory:
		kind = env.FaultMemory
	}
	if text == "" {
		text = hostabi.Status(-int32(w.reply.Kind)).String()
	}
	return e.newFault(kind, call, w.envOf(w.reply.Inline[1]), errors.New(text))
}

// replace starts a process for each worker that the function which selects, and binds the block there. The old ones have ended.
func (e *batch) replace(which func(*worker) bool) error {
	errs := make([]error, len(e.workers))
	var all sync.WaitGroup
	for i, w := range e.workers {
		if which(w) {
			all.Go(func() { e.workers[i], errs[i] = e.succeed(w) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// hasGone reports whether a process has ended.
func hasGone(w *worker) bool { return w.gone.Load() }

// attempts is how often a process is started in the place of another before that is given up: it can be killed like
// the other.
const attempts = 4

// succeed returns a process that has made the environments of an ended one. If that fails it returns the old one.
func (e *batch) succeed(old *worker) (w *worker, err error) {
	for range attempts {
		if w, err = e.successor(old); err == nil {
			return w, old.end()
		}
		if e.options.Abandoned() {
			break
		}
	}
	return old, err
}

func (e *batch) successor(old *worker) (*worker, error) {
	w, err := e.plugin.again(e.wanted(), e.options.Name)
	if err != nil {
		return nil, err
	}
	err = e.adopt(w, old.span)
	if err == nil {
		err = e.rebind(w)
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// rebind binds the block that the others are bound to.
func (e *batch) rebind(w *worker) error {
	if e.block.Schema == nil {
		return nil
	}
	file := e.files[e.number-1]
	if err := w.announce(e.number, e.block, file.size); err != nil {
		return err
	}
	m := e.bindMessage()
	w.post(&m)
	w.await(time.Now().Add(e.plugin.source.init()))
	if w.verdict != answered {
		return w.ending()
	}
	if w.reply.Kind != 0 {
		return e.blame(w, hostabi.ExportBind, 0)
	}
	return nil
}
