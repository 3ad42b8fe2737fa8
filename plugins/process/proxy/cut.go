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

// cutWithin is how long a process may take to abandon its work and to send its state. It is less than the wait of a run that is cut.
const cutWithin = 6 * time.Second

// errCut is why a state that was asked for before the cut is not waited for.
var errCut = errors.New("the run is cut")

// Cut tells the process to abandon its work; see component.Cuttable. What waits for its state asks again, for no longer than cutWithin.
func (x *proxy) Cut() {
	l := x.newestSession()
	if x.cut.Swap(true) || l == nil {
		return
	}
	l.giveUp(errCut)
	if !x.cuts {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeoutCause(x.shared.running, cutWithin, spawn.ErrGrace)
		defer cancel()
		if err := l.process.Call(ctx, native.MethodCut, native.Empty{}, nil); err != nil {
			x.shared.h.Log.Debug("the plugin does not give up what it is at", "err", err)
		}
	}()
}

// SnapshotApart is Snapshot off the loop; see component.Apart.
func (x *proxy) SnapshotApart() (state component.State, ok bool, err error) {
	l := x.newestSession()
	if l == nil || !x.snapshot || !x.cut.Load() {
		return component.State{}, false, nil
	}
	state, err = x.snapshotOfCut(l)
	return state, true, err
}

// snapshotOfCut is Snapshot where the run is cut. For a process that does not abandon its work it is the newest state that it has sent.
func (x *proxy) snapshotOfCut(l *session) (component.State, error) {
	raw, err := l.fetchState(cutWithin)
	if err == nil {
		return component.DecodeState(raw)
	}
	x.shared.mu.Lock()
	s := x.saved
	x.shared.mu.Unlock()
	if s == nil {
		return component.State{}, fmt.Errorf("%w: plugin %q does not give up the dataset that it is at within %v, and has sent no state before: %v",
			component.ErrNoSnapshot, x.shared.program.Name, cutWithin, err)
	}
	s.kept(nil)
	x.shared.h.Log.Warn("the plugin does not give up the dataset that it is at: an earlier state of it is saved", "age", time.Since(s.at).Round(time.Millisecond), "err", err)
	return component.DecodeState(s.bytes)
}
