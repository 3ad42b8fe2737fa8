package component

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// answers are what a guest needs to answer requests.
type answers struct {
	answerAt  uint32 // its memory for an answer of the greatest length; 0: it has not given that yet
	answering bool   // it answers one now, and emits nothing meanwhile
}

// forgetMemory forgets the memory that the guest has not given in its restored state.
func (a *answers) forgetMemory(run *instance) {
	if !run.Gave(a.answerAt) {
		a.answerAt = 0
	}
}

// handler returns what answers a request of the manifest.
func (g *component) handler(request int) core.Handler {
	return func(_ context.Context, args json.RawMessage, answer func(json.RawMessage, error)) {
		answer(g.answerTo(request, args))
	}
}

// answerTo has the guest answer a request. A fault costs the request its answer, and the guest continues from the state that was saved last.
func (g *component) answerTo(request int, args []byte) (json.RawMessage, error) {
	if g.dead {
		return nil, fmt.Errorf("%w: it has failed", core.ErrLost)
	}
	g.keep()
	g.answering = true
	reply, err := g.requested(request, args)
	g.answering = false
	var fault *env.Fault
	if !errors.As(err, &fault) {
		return reply, err
	}
	if g.faulted(err) && g.dead {
		return nil, fmt.Errorf("%w: %w", core.ErrLost, err)
	}
	return nil, raised(fault)
}

// raised is the error of a request whose guest has returned a negative status, or has a fault.
func raised(fault *env.Fault) error {
	var status *statusError
	if !errors.As(fault, &status) {
		return &core.Raised{Type: fault.Kind.String(), Text: fault.Err.Error(), Place: filepath.Base(fault.Source)}
	}
	text := cmp.Or(status.words, status.text)
	if status.status == hostabi.StatusArgument {
		return &core.ArgsError{Reason: text}
	}
	return &core.Raised{Text: text}
}

// requested calls rl_request with a RequestCall and the arguments, and copies the answer. The clock of the guest stands still, so that a question
// changes nothing in a reproducible run.
func (g *component) requested(request int, args []byte) (json.RawMessage, error) {
	if g.answerAt == 0 {
		at, err := g.run.Allocate(hostabi.MaxRequestBytes, 16)
		if err != nil {
			return nil, err
		}
		g.answerAt = at
	}
	call := hostabi.RequestCall{Size: hostabi.RequestCallBytes, Request: uint32(request), ArgsAt: hostabi.RequestCallBytes, ArgsLen: uint32(len(args))}
	b, _ := binary.Append(nil, binary.LittleEndian, &call) // a struct of fixed size always fits
	b = append(b, args...)
	at, err := put(g.run, b)
	if err != nil {
		return nil, err
	}
	reply, err := g.replied(at, uint32(len(b)))
	var fault *env.Fault
	if errors.As(err, &fault) && fault.Poisons() {
		return nil, err // the memory for the arguments is gone with the state
	}
	if freed := g.run.Free(at, uint32(len(b))); freed != nil {
		return nil, freed
	}
	return reply, err
}

func (g *component) replied(at, n uint32) (json.RawMessage, error) {
	length, err := g.run.call(hostabi.ExportRequest, g.module.File.Config.Step, uint64(at), uint64(n), uint64(g.answerAt), hostabi.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	if length > hostabi.MaxRequestBytes {
		return nil, fmt.Errorf("%w has %d bytes, at most %d", core.ErrAnswer, length, hostabi.MaxRequestBytes)
	}
	return slices.Clone(g.run.View(g.answerAt, uint32(length))), nil
}

// await has the guest called with an answer.
func (g *component) await(number uint32, reply json.RawMessage, err error) {
	g.host.Receiver.Post(func(*hostabi.Message) { g.answered(number, reply, err) }, hostabi.Message{})
}

// answered calls rl_answer, unless a fault has made the guest forget the question.
func (g *component) answered(number uint32, reply json.RawMessage, err error) {
	if g.dead {
		return
	}
	g.keep()
	ask, ok := g.asking.open[number]
	if !ok {
		return
	}
	delete(g.asking.open, number)
	g.emitted = 0
	if err := g.tell(number, ask, reply, err); err != nil {
		g.failed(err)
	}
}

// tell calls rl_answer. The clock of the guest stands still.
func (g *component) tell(number, ask uint32, reply []byte, failed error) error {
	b := describeAnswer(number, ask, reply, failed)
	at, err := put(g.run, b)
	if err != nil {
		return err
	}
	err = g.run.status(hostabi.ExportAnswer, g.module.File.Config.Step, uint64(at), uint64(len(b)))
	var fault *env.Fault
	if errors.As(err, &fault) && fault.Poisons() {
		return err // the memory for the answer is gone with the state
	}
	return cmp.Or(err, g.run.Free(at, uint32(len(b))))
}
