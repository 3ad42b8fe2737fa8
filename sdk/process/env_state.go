package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi/native"
)

// doState handles the calls outside the step path. The gRPC code of an error tells the host its severity.
func (w *envs) doState(_ context.Context, c native.EnvStateCall) (native.StateSize, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	size, err := w.state(c)
	var f *env.Fault
	if !errors.As(err, &f) || errors.Is(err, env.ErrUnsupported) {
		return size, err
	}
	if f.Poisons() {
		return size, f.Err
	}
	return size, refuse(native.CodeOrder, "%v", f.Err)
}

func (w *envs) state(c native.EnvStateCall) (native.StateSize, error) {
	none := native.StateSize{}
	if w.env == nil || w.stopped {
		return none, errNotMade
	}
	switch c.Do {
	case "renew":
		return none, w.env.Renew()
	case "snapshot":
		state, err := w.env.Snapshot()
		if err != nil {
			return none, err
		}
		return w.sendState(state)
	case "restore":
		state, err := w.stateOf(c)
		if err != nil {
			return none, err
		}
		return none, w.env.Restore(state)
	case "save", "load":
		return w.moveEnv(c)
	case "render":
		return w.render(c)
	}
	return none, fmt.Errorf("%w: %q", env.ErrUnsupported, c.Do)
}

// render draws one environment.
func (w *envs) render(c native.EnvStateCall) (native.StateSize, error) {
	from, ok := w.env.(env.Renderer)
	if !ok || c.Mode < 0 || c.Mode&0xff > 31 {
		return native.StateSize{}, fmt.Errorf("%w: pictures", env.ErrUnsupported)
	}
	picture, err := from.Render(c.Env, 1<<(c.Mode&0xff), c.Mode>>8, nil)
	if err != nil {
		return native.StateSize{}, err
	}
	return w.sendState(picture)
}

// moveEnv saves or loads one environment.
func (w *envs) moveEnv(c native.EnvStateCall) (native.StateSize, error) {
	none := native.StateSize{}
	stater, ok := w.env.(env.Stater)
	if !ok {
		return none, fmt.Errorf("%w: the state of one environment", env.ErrUnsupported)
	}
	if c.Do == "save" {
		state, err := stater.SaveEnv(c.Env, nil)
		if err != nil {
			return none, err
		}
		return w.sendState(state)
	}
	state, err := w.stateOf(c)
	if err != nil {
		return none, err
	}
	return none, stater.LoadEnv(c.Env, state)
}

// sendState sends a state on the wire.
func (w *envs) sendState(state []byte) (native.StateSize, error) {
	w.calls++
	size := native.StateSize{Call: w.calls, Bytes: int64(len(state))}
	seg, err := shm.Create("rlhost: state", max(len(state), 1))
	if err != nil {
		return size, err
	}
	copy(seg.Bytes(), state)
	return size, errors.Join(w.send(native.Frame{State: &size}, seg.FD()), seg.Close())
}

// stateOf returns the state that the host has sent with a call.
func (w *envs) stateOf(c native.EnvStateCall) ([]byte, error) {
	if c.State == nil || c.State.Bytes < 0 {
		return nil, fmt.Errorf("%w: a call without its state", errLength)
	}
	file, err := w.states.take(c.State.Call)
	if err != nil {
		return nil, err
	}
	state, err := readState(file, c.State.Bytes)
	return state, errors.Join(err, file.Close())
}

func readState(file *os.File, size int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if size > info.Size() {
		return nil, fmt.Errorf("%w: state of %d bytes in a file of %d", errLength, size, info.Size())
	}
	state := make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(file, 0, size), state)
	return state, err
}
