package plugintest

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
)

// head begins a snapshot: the batch that it fits, and the count of calls.
type head struct {
	Envs, Autoreset uint32
	Calls           uint64
}

// Snapshot returns the states of all environments.
func (e *scripted) Snapshot() ([]byte, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	if e.plugin.script.Flaws.NoSnapshot {
		return nil, fmt.Errorf("%w: snapshot", env.ErrUnsupported)
	}
	b, err := binary.Append(nil, binary.LittleEndian,
		head{uint32(e.options.Envs), uint32(e.options.Autoreset), e.calls})
	if err != nil {
		return nil, err
	}
	for i := range e.states {
		if b, err = e.SaveEnv(i, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Restore replaces the states of all environments.
func (e *scripted) Restore(snapshot []byte) error {
	if e.closed {
		return e.usable()
	}
	var h head
	states := make([]state, e.options.Envs)
	r := bytes.NewReader(snapshot)
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return fmt.Errorf("%w: snapshot: %w", env.ErrUnsupported, err)
	}
	if int(h.Envs) != e.options.Envs || h.Autoreset != uint32(e.options.Autoreset) {
		return fmt.Errorf("%w: snapshot of %d environments", env.ErrUnsupported, h.Envs)
	}
	if err := binary.Read(r, binary.LittleEndian, states); err != nil || r.Len() > 0 {
		return fmt.Errorf("%w: damaged snapshot", env.ErrUnsupported)
	}
	e.states, e.calls, e.bound, e.poisoned = states, h.Calls, false, false
	return nil
}

// SaveEnv appends the state of one environment.
func (e *scripted) SaveEnv(i int, dst []byte) ([]byte, error) {
	if err := e.usable(); err != nil {
		return dst, err
	}
	if i < 0 || i >= len(e.states) {
		return dst, fmt.Errorf("%w: environment %d of %d", env.ErrUnsupported, i, len(e.states))
	}
	s := e.states[i]
	if e.plugin.script.Flaws.LossySnapshot {
		s.Stream = 0
	}
	if e.plugin.script.Flaws.ForgetsEnd {
		s.Ended = false
	}
	return binary.Append(dst, binary.LittleEndian, s)
}

// LoadEnv replaces the state of one environment.
func (e *scripted) LoadEnv(i int, saved []byte) error {
	if err := e.usable(); err != nil {
		return err
	}
	var s state
	if i < 0 || i >= len(e.states) || len(saved) != binary.Size(s) {
		return fmt.Errorf("%w: %d bytes for environment %d of %d", env.ErrUnsupported, len(saved), i, len(e.states))
	}
	if _, err := binary.Decode(saved, binary.LittleEndian, &s); err != nil {
		return err
	}
	e.states[i] = s
	return nil
}
