package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// startSession starts a process and the component in it. After an error nothing is left of it.
func (x *shared) startSession(save func(*session)) (*session, error) {
	holder, err := x.h.Arenas.Grant()
	if err != nil {
		return nil, err
	}
	l := &session{
		x: x, holder: holder, claims: holder, broken: make(chan error, 1), since: time.Now(),
		asks: map[question]ask{}, states: spawn.NewStates(maxStateBytes), own: map[uint8]bool{}, saving: newSaving(), metrics: newMetrics(), requests: requests{log: x.h.Log, open: map[uint64]func(json.RawMessage, error){}},
	}
	l.save = func() { save(l) }
	if err := l.start(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// start starts the process, configures the component and starts it.
func (l *session) start() error {
	x := l.x
	program := x.program
	program.Place = x.h.Place.Or(program.Place)
	p, err := x.runtime.Start(x.running, program, spawn.StartOptions{
		Name: x.h.Name, Log: x.h.Log, Handle: l.handle, Broken: l.fault,
		Before: func(w *spawn.Wire) error {
			l.wire = w
			l.unwatch = x.h.Arenas.Watch(l.announce)
			return nil
		},
	})
	if err != nil {
		return err
	}
	l.process = p
	limited, end := context.WithTimeoutCause(x.running, p.Program.Start, spawn.ErrSlow)
	defer end()
	var configured native.Configured
	if err := l.call(limited, native.MethodConfigure, x.configuration(l.holder), &configured); err != nil {
		return err
	}
	if err := spawn.KeyErrors(configured.Errors); err != nil {
		return err
	}
	switch m, err := x.describedBy(&configured); {
	case err != nil:
		return err
	case !m.SamePorts(&x.manifest):
		return &spawn.Error{Code: spawn.CodeProtocol, Program: x.program.Name,
			Reason: fmt.Sprintf("kind %q has other signals or slots than when its table was checked", x.kind),
			Help:   "if the program has changed, reload the pipeline file"}
	}
	p.Took.Configure = p.Took.Part()
	if err := l.connect(); err != nil {
		return err
	}
	if err := l.call(limited, native.MethodStart, native.Empty{}, nil); err != nil {
		return err
	}
	p.Took.Start = p.Took.Part()
	x.h.Log.Debug("plugin process has started", "pid", p.PID(), "took", p.Took)
	return nil
}

// connect makes the link. Nothing moves on it before proxy.begin.
func (l *session) connect() (err error) {
	x := l.x
	l.link, err = link.New(link.Config{
		Name: x.h.Name, Transport: l.process.Transport, Host: true,
		Sends: ports(x.manifest.Slots), Receives: ports(x.manifest.Signals),
		Arenas: x.h.Arenas, Receiver: x.h.Receiver, Limit: x.limit, Window: hostabi.LinkWindow,
		Answers: func(port int) int { return x.signals[port].Receivers() }, Deliver: l.deliver, Control: l.control, Fault: l.fault,
	})
	if err == nil {
		x.h.Arenas.Credits(l.holder, l.credit)
	}
	return err
}

// handle takes a frame of the plugin, on a goroutine of the wire.
func (l *session) handle(f *native.Frame, files []*os.File) {
	l.heard.Add(1)
	if f.State != nil && len(files) == 1 {
		if err := l.states.Put(*f.State, files[0]); err != nil {
			l.fault(err)
		}
		return
	}
	_ = spawn.CloseFiles(files) // nothing else comes with files
	switch {
	case f.AddArena != nil:
		l.addArena(f.AddArena)
	case f.Stats != nil:
		if err := l.metrics.take(f.Stats, l.x.h.Stats); err != nil {
			l.fault(err)
		}
	case f.Answer != nil:
		l.requests.answered(f.Answer)
	case f.Ask != nil:
		l.askOther(f.Ask)
	case f.Fail != nil:
		l.x.fail(&spawn.Error{Code: spawn.CodeRaised, Program: l.x.program.Name, Reason: cut(f.Fail.Reason)})
		go l.dismiss()
	default:
		l.fault(errors.New("a frame on its wire that a component does not send"))
	}
}

// run tells the process that the run has begun: by then a saved state has been restored.
func (l *session) run(*hostabi.Message) { l.link.Post(hostabi.Message{Slot: hostabi.LinkRun}) }
