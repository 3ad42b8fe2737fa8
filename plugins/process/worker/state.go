package worker

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// stateMagic begins the snapshot of a batch in several processes: their number and the length of each one's part
// follow, then the parts. A single process's snapshot is the process's own, so that it fits a batch without processes.
const stateMagic = "rlenvs1\n"

// Renew returns the batch to the state just after its creation; processes that have ended are started again.
func (e *batch) Renew() error {
	if _, err := e.gate.EnterPoisoned(); err != nil {
		return err
	}
	defer e.gate.Leave()
	e.block, e.rows, e.steps = env.Block{}, 0, 0
	for _, w := range e.workers {
		if !w.gone.Load() {
			if _, err := w.state(native.EnvStateCall{Do: "renew"}, nil); err != nil {
				w.p.Kill() // another process is as new
				<-w.p.Died()
				w.gone.Store(true)
			}
		}
	}
	if err := e.replace(hasGone); err != nil {
		e.gate.Poison()
		return e.newFault(env.FaultTrap, "the host", -1, err)
	}
	return nil
}

// sized returns the announcement of a state.
func (e *batch) sized(state []byte) *native.StateSize {
	e.calls++
	return &native.StateSize{Call: e.calls, Bytes: int64(len(state))}
}

// fault makes a fault of an error of a call that is not on the step path.
func (e *batch) fault(call string, err error) error {
	var f *env.Fault
	switch {
	case errors.Is(err, env.ErrUnsupported):
		return err
	case errors.As(err, &f):
		return e.newFault(f.Kind, call, -1, f.Err)
	}
	e.gate.Poison()
	return e.newFault(env.FaultTrap, call, -1, err)
}

// Snapshot returns the states of all environments; see env.Env.
func (e *batch) Snapshot() ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	parts := make([][]byte, len(e.workers))
	for i, w := range e.workers {
		var err error
		if parts[i], err = w.state(native.EnvStateCall{Do: "snapshot"}, nil); err != nil {
			return nil, e.fault("snapshot", err)
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	b := binary.LittleEndian.AppendUint32([]byte(stateMagic), uint32(len(parts)))
	for _, part := range parts {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(part)))
	}
	for _, part := range parts {
		b = append(b, part...)
	}
	return b, nil
}

// split is the inverse of Snapshot's join of the parts.
func (e *batch) split(b []byte) ([][]byte, error) {
	n := len(e.workers)
	if n == 1 {
		return [][]byte{b}, nil
	}
	head := len(stateMagic) + 4
	if len(b) < head || string(b[:len(stateMagic)]) != stateMagic {
		return nil, fmt.Errorf("%w: %s: not a snapshot of environments in %d processes", env.ErrUnsupported, e.options.Name, n)
	}
	if got := binary.LittleEndian.Uint32(b[len(stateMagic):]); got != uint32(n) {
		return nil, fmt.Errorf("%w: %s: snapshot of environments in %d processes, here are %d", env.ErrUnsupported, e.options.Name, got, n)
	}
	lengths, rest := b[head:], []byte(nil)
	if len(lengths) >= 8*n {
		lengths, rest = lengths[:8*n], lengths[8*n:]
	}
	var parts [][]byte
	for ; len(lengths) >= 8; lengths = lengths[8:] {
		size := binary.LittleEndian.Uint64(lengths)
		if size > uint64(len(rest)) {
			break
		}
		parts, rest = append(parts, rest[:size]), rest[size:]
	}
	if len(parts) != n || len(rest) > 0 {
		return nil, fmt.Errorf("%w: %s: damaged snapshot", env.ErrUnsupported, e.options.Name)
	}
	return parts, nil
}

// Restore replaces the states of all environments; see env.Env.
func (e *batch) Restore(snapshot []byte) error {
	poisoned, err := e.gate.EnterPoisoned()
	if err != nil {
		return err
	}
	defer e.gate.Leave()
	unchanged := func(err error) error {
		if poisoned {
			e.gate.Poison()
		}
		return err
	}
	parts, err := e.split(snapshot)
	if err != nil {
		return unchanged(err)
	}
	if err := e.replace(hasGone); err != nil {
		return e.fault("restore", err)
	}
	for i, w := range e.workers {
		_, err := w.state(native.EnvStateCall{Do: "restore", State: e.sized(parts[i])}, parts[i])
		if err != nil && i == 0 && errors.Is(err, env.ErrUnsupported) {
			return unchanged(err)
		}
		if err != nil {
			e.gate.Poison()
			return e.fault("restore", err)
		}
	}
	e.block, e.rows = env.Block{}, 0
	return nil
}

// SaveEnv appends the state of one environment; see env.Stater.
func (e *batch) SaveEnv(env int, dst []byte) ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return dst, err
	}
	defer e.gate.Leave()
	w, i := e.find(env)
	if w == nil {
		return dst, e.noSuchEnv(env)
	}
	state, err := w.state(native.EnvStateCall{Do: "save", Env: i}, nil)
	if err != nil {
		return dst, e.fault(hostabi.ExportSave, err)
	}
	return append(dst, state...), nil
}

// LoadEnv replaces the state of one environment; see env.Stater.
func (e *batch) LoadEnv(env int, state []byte) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	w, i := e.find(env)
	if w == nil {
		return e.noSuchEnv(env)
	}
	if _, err := w.state(native.EnvStateCall{Do: "load", Env: i, State: e.sized(state)}, state); err != nil {
		return e.fault(hostabi.ExportLoad, err)
	}
	return nil
}
