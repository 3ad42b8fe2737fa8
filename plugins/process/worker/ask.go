package worker

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi/native"
)

// doAsk is the call that puts a question to environments.
const doAsk = "ask"

// Ask puts a question to the environments of all processes at the same time; see env.Asked. A process that does not answer is killed: the
// next call on the step path replaces it.
func (e *batch) Ask(question []byte) ([][]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	answers, errs := make([][]byte, len(e.workers)), make([]error, len(e.workers))
	var all sync.WaitGroup
	for i, w := range e.workers {
		size := e.sized(question)
		all.Go(func() { answers[i], errs[i] = w.state(native.EnvStateCall{Do: doAsk, State: size}, question) })
	}
	all.Wait()
	for i, err := range errs {
		if err == nil || errors.Is(err, env.ErrUnsupported) {
			continue
		}
		w := e.workers[i]
		if !w.gone.Load() {
			w.p.Kill()
			<-w.p.Died()
			w.gone.Store(true)
		}
		f := e.newFault(env.FaultLost, doAsk, -1, fmt.Errorf("process %d: %w", w.p.PID(), err))
		f.Lost = []env.Span{w.span}
		errs[i] = f
	}
	return answers, errors.Join(errs...)
}
