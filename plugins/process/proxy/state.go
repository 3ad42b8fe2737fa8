package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// fetchState asks for the state, and waits for the file that it comes in: no longer than the limit, and until giveUp.
func (l *session) fetchState(limit time.Duration) ([]byte, error) {
	l.calls.Add(1) // until the state is here, not only the answer
	defer l.calls.Add(-1)
	ctx, cancel := context.WithTimeoutCause(l.untilGivenUp(), limit, spawn.ErrGrace)
	defer cancel()
	var size native.StateSize
	if err := l.call(ctx, native.MethodSnapshot, native.Empty{}, &size); err != nil {
		return nil, noSnapshot(err)
	}
	return l.states.Take(size, l.process.Died())
}

// noSnapshot marks a refusal that concerns the state and not the run.
func noSnapshot(err error) error {
	var e *spawn.Error
	if errors.As(err, &e) && e.Code == spawn.CodeProtocol {
		return fmt.Errorf("%w: %s", component.ErrNoSnapshot, e.Reason)
	}
	return err
}

// giveState sends a state and tells the component to continue from it.
func (l *session) giveState(raw []byte) error {
	l.mu.Lock()
	l.calling++
	size := native.StateSize{Call: l.calling, Bytes: int64(len(raw))}
	l.mu.Unlock()
	if err := l.wire.SendState(size, raw); err != nil {
		return l.process.SendError(native.MethodRestore, err)
	}
	return l.callOnLoop(native.MethodRestore, size, nil)
}

// finishedNow returns how many messages have had their part in the state that the process has just saved. How many it
// has finished with it has said before. At a boundary it waits in the slot of one more.
func (l *session) finishedNow() uint64 {
	l.catchUp()
	s := l.link.Stats()
	if l.atBoundary.Load() && s.Unacked > 0 {
		return s.Acked + 1
	}
	return s.Acked
}
