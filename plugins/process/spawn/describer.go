package spawn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rlhost/rlhost/hostabi/native"
)

// describerIdle is how long a process that answers questions before the start is kept for the next question.
const describerIdle = 2 * time.Second

// describer is a process of a program that describes itself and checks configurations, and never runs a component.
// Checking a file asks several times in a row, and starting some programs takes long.
type describer struct {
	launch func(context.Context, Program) (*Process, error)

	mu          sync.Mutex // one question at a time
	process     *Process   // nil when there is none
	idle        *time.Timer
	known       bool
	description native.Description
}

// describe returns the program's description of itself.
func (d *describer) describe(ctx context.Context, p Program) (native.Description, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known {
		if _, err := d.start(ctx, p); err != nil {
			return native.Description{}, err
		}
	}
	return d.description, nil
}

// check asks whether a configuration is right. A kept process that dies of the question may have been dead before, and nobody had noticed
// yet: a new one is asked again.
func (d *describer) check(ctx context.Context, p Program, c native.Configuration) (native.Configured, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.process
	answer, err := d.ask(ctx, p, c)
	if kept != nil && errors.Is(err, ErrDied) {
		answer, err = d.ask(ctx, p, c)
	}
	return answer, err
}

// ask asks the process once, with mu held. One that gives no answer is stopped.
func (d *describer) ask(ctx context.Context, p Program, c native.Configuration) (answer native.Configured, err error) {
	asked, err := d.start(ctx, p)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, asked.Program.Start, ErrSlow)
	defer cancel()
	c.CheckOnly = true
	if err := asked.Call(ctx, native.MethodConfigure, c, &answer); err != nil {
		d.stop()
		return native.Configured{}, err
	}
	return answer, nil
}

// start returns the process, started if there is none. With mu held.
func (d *describer) start(ctx context.Context, program Program) (*Process, error) {
	if d.process != nil {
		select {
		case <-d.process.Died():
			d.stop()
		default:
			d.idle.Reset(describerIdle)
			return d.process, nil
		}
	}
	p, err := d.launch(ctx, program)
	if err != nil {
		return nil, err
	}
	d.process, d.known, d.description = p, true, p.Description
	d.idle = time.AfterFunc(describerIdle, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.process == p {
			d.stop()
		}
	})
	return p, nil
}

// stop ends the process. With mu held.
func (d *describer) stop() {
	if d.process == nil {
		return
	}
	d.idle.Stop()
	d.process.Kill() // it has nothing to lose
	<-d.process.Died()
	_ = d.process.Close() // it has answered; how it ends does not matter
	d.process = nil
}
