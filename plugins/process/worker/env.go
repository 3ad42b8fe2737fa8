package worker

import (
	"errors"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

var (
	_ env.Plugin     = (*plugin)(nil)
	_ env.Configured = (*plugin)(nil)
	_ env.Env        = (*batch)(nil)
	_ env.Stater     = (*batch)(nil)
	_ env.Starter    = (*batch)(nil)
	_ env.Asked      = (*batch)(nil)
	_ env.Separate   = (*batch)(nil)
)

// NewEnv makes a batch of environments and returns when all its processes are ready. An error wraps
// env.ErrUnsupported, or is an *Error.
func (p *plugin) NewEnv(o env.Options) (env.Env, error) {
	n := min(p.workers, o.Envs)
	if err := o.Check(&p.spec, n); err != nil {
		return nil, err
	}
	e := &batch{
		plugin: p, options: o, workers: make([]*worker, n), gate: env.Gate{Name: o.Name, Closed: ErrClosed},
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			first, next := i*o.Envs/n, (i+1)*o.Envs/n
			e.workers[i], errs[i] = e.startWorker(env.Span{First: first, Count: next - first})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, e.stopWorkers())
	}
	return e, nil
}

// Spec returns the environment's description of itself.
func (e *batch) Spec() *hostabi.EnvSpec { return &e.plugin.spec }

// Close ends the processes.
func (e *batch) Close() error {
	first, err := e.gate.Shut()
	if !first {
		return err
	}
	e.alone.end(e)
	if e.waits != nil {
		close(e.waits)
		e.waiter.Wait()
	}
	return e.stopWorkers()
}
