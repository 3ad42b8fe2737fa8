package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/hostabi/native"
)

// clerkIdle is how long a process that answers questions before the start is kept for the next question.
const clerkIdle = 2 * time.Second

// clerk is a process of a program that is asked what it is and whether configurations are right, and never runs
// a component. Checking a file asks several times in a row, and starting some programs takes long.
type clerk struct {
	mu          sync.Mutex // one question at a time
	process     *process   // nil when there is none
	idle        *time.Timer
	known       bool
	description native.Description
}

// Describe returns what a program says of itself: it is started, asked and stopped. The answer is kept for as long
// as the file stays the same.
func (r *Runtime) Describe(ctx context.Context, p Program) (native.Description, error) {
	c, err := r.clerkOf(&p)
	if err != nil {
		return native.Description{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		if _, err := r.employ(ctx, c, p); err != nil {
			return native.Description{}, err
		}
	}
	return c.description, nil
}

// checkConfig asks a program whether a configuration is right.
func (r *Runtime) checkConfig(ctx context.Context, p Program, c native.Configuration) (native.Configured, error) {
	clerk, err := r.clerkOf(&p)
	if err != nil {
		return native.Configured{}, err
	}
	clerk.mu.Lock()
	defer clerk.mu.Unlock()
	asked, err := r.employ(ctx, clerk, p)
	if err != nil {
		return native.Configured{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, asked.program.Start, errSlow)
	defer cancel()
	c.CheckOnly = true
	var answer native.Configured
	if err := asked.call(ctx, native.MethodConfigure, c, &answer); err != nil {
		clerk.dismiss()
		return native.Configured{}, err
	}
	return answer, nil
}

// clerkOf returns the clerk of a program as its file is now.
func (r *Runtime) clerkOf(p *Program) (*clerk, error) {
	info, err := os.Stat(p.Path)
	if err != nil {
		return nil, runError(p, p.Path, err)
	}
	key := fmt.Sprintf("%s\x00%d\x00%d\x00%s\x00%s\x00%s\x00%s\x00%s", p.Path, info.ModTime().UnixNano(), info.Size(), p.SHA256,
		strings.Join(p.Interpreter, "\x00"), strings.Join(p.Args, "\x00"), strings.Join(p.Env, "\x00"), p.Dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	c := r.clerks[key]
	if c == nil {
		c = new(clerk)
		r.clerks[key] = c
	}
	return c, nil
}

var errClosed = errors.New("the runtime of native plugins is closed")

// employ returns the clerk's process, started if there is none. With clerk.mu held.
func (r *Runtime) employ(ctx context.Context, c *clerk, program Program) (*process, error) {
	if c.process != nil {
		select {
		case <-c.process.died():
			c.dismiss()
		default:
			c.idle.Reset(clerkIdle)
			return c.process, nil
		}
	}
	p, err := r.start(ctx, program, startOptions{
		log:    r.log.With("plugin", program.Name),
		handle: func(_ *native.Frame, files []*os.File) { _ = closeFiles(files) },
		broken: func(error) {},
	})
	if err != nil {
		return nil, err
	}
	c.process, c.known, c.description = p, true, p.description
	c.idle = time.AfterFunc(clerkIdle, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.process == p {
			c.dismiss()
		}
	})
	return p, nil
}

// dismiss ends the clerk's process. With mu held.
func (c *clerk) dismiss() {
	if c.process == nil {
		return
	}
	c.idle.Stop()
	c.process.kill() // it has nothing to lose
	<-c.process.died()
	_ = c.process.close() // whatever is wrong with it now concerns nobody
	c.process = nil
}
