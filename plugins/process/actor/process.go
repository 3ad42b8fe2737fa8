package actor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// process is a process of the program. It belongs to the goroutine that acts.
type process struct {
	*spawn.Process
	runtime *spawn.Runtime
	broken  atomic.Pointer[error] // it has broken the protocol
	one     [1]hostabi.Message
	buffer  [8]hostabi.Message
}

// startProcess starts a program for a policy.
func startProcess(ctx context.Context, r *spawn.Runtime, program spawn.Program, name string) (*process, error) {
	p := &process{runtime: r}
	var own atomic.Pointer[spawn.Process]
	fail := func(err error) {
		p.broken.CompareAndSwap(nil, &err)
		if started := own.Load(); started != nil {
			started.Kill()
		}
	}
	started, err := r.Start(ctx, program, spawn.StartOptions{
		Name: name, Log: r.Log().With("policy", name), Broken: fail,
		Handle: func(f *native.Frame, files []*os.File) {
			_ = spawn.CloseFiles(files) // the sender has its own
			if f.Stats == nil {
				fail(errors.New("a frame on its wire that programs of policies do not send"))
			}
		},
	})
	if err != nil {
		return nil, err
	}
	p.Process = started
	if own.Store(started); p.broken.Load() != nil {
		started.Kill()
	}
	go func() {
		<-started.Died()
		started.Transport.Nudge()
	}()
	return p, nil
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.Died():
		return true
	default:
		return false
	}
}

// share tells the process of the scratch area.
func (p *process) share(s *shm.Segment, layout *native.PolicyScratch) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), p.Program.Start, spawn.ErrSlow)
	defer cancel()
	if err := p.Call(ctx, native.MethodPolicyRun, layout, nil); err != nil {
		return err
	}
	if err := p.Wire.Send(native.Frame{File: &native.File{Bytes: int64(s.Size())}}, s.FD()); err != nil {
		return p.SendError(native.MethodPolicyRun, err)
	}
	return nil
}

// errLate: the process has not answered within its time.
var errLate = errors.New("no answer in time")

// ask sends a message and returns the answer. The errors are spawn.ErrDied, errLate and violations of the protocol. The process
// has ended after each.
func (p *process) ask(m hostabi.Message, within time.Duration) (*hostabi.Message, error) {
	p.one[0] = m
	if p.Transport.Put(p.one[:]) == 0 {
		return nil, p.end(errors.New("its ring is full"))
	}
	until := time.Now().Add(within)
	for {
		ended := p.gone() // before looking: messages before the end count
		for _, got := range p.buffer[:p.Transport.Get(p.buffer[:])] {
			switch got.Slot {
			case hostabi.LinkPolicyReply:
				p.one[0] = got
				return &p.one[0], nil
			case hostabi.LinkAck:
			default:
				return nil, p.end(fmt.Errorf("a message to slot %d, which programs of policies do not send", got.Slot))
			}
		}
		left := time.Until(until)
		switch {
		case ended:
			return nil, p.died()
		case p.Transport.IsShut():
			return nil, p.end(errors.New("it has shut its ring"))
		case left <= 0 && !p.Traced():
			p.Abort() // it says where it is
			<-p.Died()
			return nil, errLate
		}
		if left <= 0 {
			left = time.Second // a debugger is attached
		}
		p.Transport.Wait(left)
	}
}

// died returns why the process has ended.
func (p *process) died() error {
	if err := p.broken.Load(); err != nil {
		return fmt.Errorf("%w: it was killed: %w", spawn.ErrDied, *err)
	}
	return spawn.ErrDied
}

// end kills a process that has done something wrong.
func (p *process) end(why error) error {
	p.Kill()
	<-p.Died()
	return why
}

// close ends the process and releases its resources.
func (p *process) close() error {
	if !p.gone() {
		_ = p.Stop(p.runtime.Grace()) // its answer changes nothing
	}
	return p.Process.Close()
}
