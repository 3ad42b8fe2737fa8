package wasm

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/guest"

	"github.com/rlhost/rlhost/hostabi"
)

// One call of the guest should stay below callTime, so that nothing waits long for it.
const (
	callTime    = time.Millisecond
	measureMask = 63 // a power of two less one: every 64th step is timed
)

// pace is how a batch is cut into calls.
type pace struct {
	parts int           // calls per step, 0 and 1 mean rl_step
	last  time.Duration // newest measurement
}

// stepPaced calls rl_step, or rl_step_range for parts of the batch where a step takes long and the guest has it, and measures the time of some
// steps.
func (e *Env) stepPaced(t int) (result int32, err error) {
	i := e.inst
	measured := i.Steps()&measureMask == 1 && i.Has(guest.StepRange)
	var started time.Time
	if measured {
		started = time.Now()
	}
	if e.pace.parts > 1 {
		result, err = e.stepParts(t)
	} else {
		i.Stack[0], i.Stack[1] = e.batch, uint64(t)
		result, err = i.Run(guest.Step)
	}
	if measured && err == nil {
		e.pace.update(time.Since(started), e.options.Envs)
	}
	return result, err
}

func (e *Env) stepParts(t int) (int32, error) {
	i, n := e.inst, e.options.Envs
	for part := range e.pace.parts {
		first := part * n / e.pace.parts
		count := (part+1)*n/e.pace.parts - first
		i.Stack[0], i.Stack[1], i.Stack[2], i.Stack[3] = e.batch, uint64(t), uint64(first), uint64(count)
		if result, err := i.Run(guest.StepRange); err != nil || result != 0 {
			return result, err
		}
	}
	return 0, nil
}

// StepParts steps parts of the batch; see env.PartStepper.
func (e *Env) StepParts(t int, parts []env.Span) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckStep(e.rows, t); err != nil {
		return err
	}
	if !e.inst.Has(guest.StepRange) {
		return fmt.Errorf("%w: %s: %s has no %s", env.ErrUnsupported, e.options.Name, e.plugin.file.Path, hostabi.ExportStepRange)
	}
	e.inst.CountStep()
	for _, p := range parts {
		if p.First < 0 || p.Count < 0 || p.First > e.options.Envs || p.Count > e.options.Envs-p.First {
			return fmt.Errorf("%w: %s: step environments %d to %d of %d", env.ErrUnsupported, e.options.Name, p.First, p.First+p.Count-1, e.options.Envs)
		}
		result, err := e.inst.Request(guest.StepRange, e.plugin.file.Config.Step, e.batch, uint64(t), uint64(p.First), uint64(p.Count))
		if err != nil {
			return e.fault(err)
		}
		if result != 0 {
			return e.stepFault(result, t)
		}
	}
	return nil
}

// update decides about the next steps. Of two measurements the shorter counts: a machine with other work makes
// some steps long.
func (p *pace) update(took time.Duration, envs int) {
	if p.last != 0 {
		p.parts = min(int((min(p.last, took)+callTime-1)/callTime), envs)
	}
	p.last = took
}

// fault turns an error of the guest into a *env.Fault, and poisons the Env where needed. Errors that callers
// handle pass unchanged.
func (e *Env) fault(err error) error {
	var known *env.Fault
	if errors.As(err, &known) || errors.Is(err, env.ErrUnsupported) || errors.Is(err, engine.ErrClosed) {
		return err
	}
	f := &env.Fault{Kind: env.FaultMemory, Name: e.options.Name, Source: e.plugin.file.Path, Call: "the host", Env: -1, Err: err}
	if e.inst != nil {
		f.Step = e.inst.Steps()
	}
	var call *guest.Error
	if errors.As(err, &call) {
		f.Kind, f.Call, f.Err = call.Kind, call.Call, call
		if e.inst != nil && call.Kind != env.FaultStatus {
			f.Env = e.currentEnv(call.Call)
			if words := e.inst.LastError(); words != "" {
				f.Err = fmt.Errorf("%w: %s", call, words)
			}
		}
	}
	if f.Poisons() {
		e.gate.Poison()
	}
	return f
}

// statusFault makes a fault of an error that the guest returned.
func (e *Env) statusFault(result int32) *env.Fault {
	name := e.inst.Calling()
	f := &env.Fault{Kind: env.FaultStatus, Name: e.options.Name, Source: e.plugin.file.Path, Call: name,
		Step: e.inst.Steps()}
	f.Err = &guest.Error{Kind: env.FaultStatus, Call: name, Reason: e.inst.Words(hostabi.Status(result))}
	f.Env = e.currentEnv(name)
	return f
}

// stepFault is statusFault of the step at t. Of an action outside its space it says whose and which, also where the guest does not.
func (e *Env) stepFault(result int32, t int) error {
	f := e.statusFault(result)
	if hostabi.Status(result) != hostabi.StatusAction {
		return f
	}
	local := -1
	if f.Env >= 0 {
		local = f.Env - e.options.FirstEnv
	}
	bound := trajectory.Trajectory{Schema: e.bound.schema, Mem: e.inst.View(e.bound.ptr, e.bound.bytes)}
	if of, action := bound.Outside(local, t); action != "" {
		f.Env, f.Err = e.options.FirstEnv+of, fmt.Errorf("%w; %s", f.Err, action)
	}
	return f
}

// currentEnv asks the guest for its current environment in a call and returns its global index, or -1.
func (e *Env) currentEnv(call string) int {
	n := e.inst.EnvAfter(call)
	if n < 0 || n >= e.options.Envs {
		return -1
	}
	return e.options.FirstEnv + n
}
