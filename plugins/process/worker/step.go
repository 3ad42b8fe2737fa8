package worker

import (
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Bind sends the block to the processes; see env.Env.
func (e *batch) Bind(b env.Block) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckBlock(&e.plugin.spec, &b); err != nil {
		return err
	}
	if b.Schema.Part() {
		return fmt.Errorf("%w: %s: block %d has gaps, which other processes are not told of", env.ErrUnsupported, e.options.Name, b.Index)
	}
	number, err := e.announce(b)
	if err != nil {
		return err
	}
	e.block, e.number, e.rows = b, number, 0
	e.selectAll()
	err = e.exchange(hostabi.ExportBind, e.bindMessage())
	if err == nil || isLost(err) {
		e.rows = b.Schema.Shape.Steps
	}
	return err
}

// Reset starts new episodes; see env.Env.
func (e *batch) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckReset(e.rows, t, mask, seeds); err != nil {
		return err
	}
	m := hostabi.Message{Slot: hostabi.LinkEnvReset, T: uint32(t)}
	if mask != nil {
		m.Kind |= hostabi.LinkEnvMask
	}
	if seeds != nil {
		m.Kind |= hostabi.LinkEnvSeeds
	}
	for _, w := range e.workers {
		w.selected = w.prepare(mask, seeds)
	}
	return e.exchange(hostabi.ExportReset, m)
}

// Step makes one step of every environment; see env.Env.
func (e *batch) Step(t int) error {
	if err := e.beginStep(t); err != nil {
		return err
	}
	defer e.gate.Leave()
	return e.collect(hostabi.ExportStep)
}

// beginStep enters the batch for a step and sends it to the processes.
func (e *batch) beginStep(t int) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	if err := e.options.CheckStep(e.rows, t); err != nil {
		e.gate.Leave()
		return err
	}
	e.steps++
	e.selectAll()
	e.post(hostabi.Message{Slot: hostabi.LinkEnvStep, T: uint32(t)})
	return nil
}

// exchange sends a message to the processes that are selected and waits for all their answers.
func (e *batch) exchange(call string, m hostabi.Message) error {
	e.post(m)
	return e.collect(call)
}

// collect waits for the answers to the posted calls.
func (e *batch) collect(call string) error {
	ok := true
	for _, w := range e.workers {
		if w.selected {
			w.await(e.until)
			ok = ok && w.verdict == answered && w.reply.Kind == 0
		}
	}
	if ok {
		return nil
	}
	return e.judge(call)
}
