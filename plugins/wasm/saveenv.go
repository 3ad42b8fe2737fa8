package wasm

import (
	"encoding/binary"
	"fmt"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

var _ env.Stater = (*Env)(nil)

// maxEnvState bounds the state of one environment.
const maxEnvState = 1 << 24

// SaveEnv appends the state of one environment to dst; see env.Stater. If the state fits into the memory that
// the guest gave for seeds and masks, it takes one call of the guest, and allocates nothing if dst has room.
func (e *Env) SaveEnv(index int, dst []byte) ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return dst, err
	}
	defer e.gate.Leave()
	if !e.plugin.file.Exports(hostabi.ExportSave) || index < 0 || index >= e.options.Envs {
		return dst, fmt.Errorf("%w: %s: save environment %d of %d", env.ErrUnsupported, e.options.Name, index, e.options.Envs)
	}
	size, err := e.ask(hostabi.ExportSave, index, e.scratch, e.scratchBytes())
	if err != nil {
		return dst, err
	}
	if size <= e.scratchBytes() && size > 0 {
		return appendState(e, dst, e.inst.View(e.scratch, size))
	}
	return saveLarge(e, index, size, dst)
}

// savedHead is the length of the head of a saved state: its version and the number of bytes that follow.
const savedHead = 8

// appendState appends a state whose head is right.
func appendState(e *Env, dst, state []byte) ([]byte, error) {
	spec := &e.plugin.spec
	wrong := func(format string, args ...any) ([]byte, error) {
		return dst, outputFault(e, hostabi.ExportSave, "a state "+format, args...)
	}
	if len(state) < savedHead {
		return wrong("of %d bytes, the head alone has %d", len(state), savedHead)
	}
	le := binary.LittleEndian
	switch version, n := le.Uint32(state), le.Uint32(state[4:]); {
	case version != spec.StateVersion:
		return wrong("of version %d, the description has %d", version, spec.StateVersion)
	case int(n) != len(state)-savedHead:
		return wrong("that says %d bytes follow its head, of which there are %d", n, len(state)-savedHead)
	case spec.StateMax > 0 && len(state) > spec.StateMax:
		return wrong("of %d bytes, the description has at most %d", len(state), spec.StateMax)
	}
	return append(dst, state...), nil
}

// ask calls a function of one environment, with a piece of guest memory, and returns a length. A guest may export a
// function only to report that it is not supported.
func (e *Env) ask(name string, env int, at, room uint32) (uint32, error) {
	n, err := e.inst.Call(name, e.plugin.file.Config.Step, e.batch, uint64(env), uint64(at), uint64(room))
	if err != nil {
		return 0, e.fault(err)
	}
	if n < 0 {
		return 0, refusal(e, n)
	}
	return uint32(n), nil
}

// saveLarge borrows memory for a state of that size.
func saveLarge(e *Env, index int, size uint32, dst []byte) ([]byte, error) {
	err := e.borrow(size, func(buf uint32) error {
		n, err := e.ask(hostabi.ExportSave, index, buf, size)
		if err == nil && n != size {
			err = fmt.Errorf("%w: %s: rl_save wants %d bytes at first and %d then", env.ErrUnsupported, e.options.Name, size, n)
		}
		if err != nil {
			return err
		}
		dst, err = appendState(e, dst, e.inst.View(buf, size))
		return err
	})
	return dst, err
}

// LoadEnv replaces the state of one environment; see env.Stater. Like SaveEnv it takes one call for a small one.
func (e *Env) LoadEnv(index int, state []byte) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if !e.plugin.file.Exports(hostabi.ExportLoad) || index < 0 || index >= e.options.Envs || len(state) == 0 || len(state) > maxEnvState {
		return fmt.Errorf("%w: %s: load %d bytes into environment %d of %d", env.ErrUnsupported, e.options.Name,
			len(state), index, e.options.Envs)
	}
	size := uint32(len(state))
	put := func(at uint32) error {
		copy(e.inst.View(at, size), state)
		n, err := e.ask(hostabi.ExportLoad, index, at, size)
		if err == nil && n != 0 {
			err = e.statusFault(int32(n))
		}
		return err
	}
	if size > e.scratchBytes() {
		return e.borrow(size, put)
	}
	return put(e.scratch)
}
