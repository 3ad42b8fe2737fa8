package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

var (
	_ component.Component = (*proxy)(nil)
	_ component.Flowing   = (*proxy)(nil)
	_ component.Remote    = (*proxy)(nil)
	_ component.Cuttable  = (*proxy)(nil)
	_ component.Apart     = (*proxy)(nil)
	_ component.Asking    = (*proxy)(nil)
)

// New returns a component that represents an instance of one of the program's kinds. Nothing runs before its
// Start, except while its configuration is checked.
func New(ctx context.Context, r *spawn.Runtime, p spawn.Program, kind string) (component.Component, error) {
	d, err := r.Describe(ctx, p)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(d.Kinds, func(k native.Kind) bool { return k.Name == kind })
	if i < 0 {
		names := make([]string, len(d.Kinds))
		for i := range d.Kinds {
			names[i] = d.Kinds[i].Name
		}
		return nil, &spawn.Error{Code: spawn.CodeKind, Program: p.Name, Reason: fmt.Sprintf("it makes no %q", kind),
			Help: "kinds: " + strings.Join(names, ", ")}
	}
	x := &proxy{
		shared: shared{
			runtime: r, program: p.WithDefaults(), kind: kind, open: map[question]hostabi.Message{},
		},
		snapshot: slices.Contains(d.Capabilities, native.CapSnapshot), pauses: slices.Contains(d.Capabilities, native.CapPause),
		cuts:  slices.Contains(d.Capabilities, native.CapCut),
		ended: make(chan struct{}),
	}
	x.shared.running, x.shared.stopAll = context.WithCancelCause(context.Background())
	x.shared.manifest, err = manifestOf(&p, kind, d.Kinds[i].Signals, d.Kinds[i].Slots, d.Kinds[i].Requests, d.Kinds[i].Asks)
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Manifest returns the ports of the component as it is configured; before that, its kind's.
func (x *proxy) Manifest() component.Manifest { return x.shared.manifest }

// Flow returns the program's description of its configuration; zero if none.
func (x *proxy) Flow() component.Flow { return x.shared.flow }

// Configure asks the program whether the table is right.
func (x *proxy) Configure(decode func(into any) error) error {
	config := map[string]any{}
	if err := decode(&config); err != nil {
		return err
	}
	x.shared.config = config
	answer, err := x.shared.runtime.CheckConfig(context.Background(), x.shared.program, native.Configuration{
		Kind: x.shared.kind, Name: x.shared.kind, Count: 1, Config: config, Lines: table.Lines(config), LogLevel: "info",
	})
	if err != nil {
		return err
	}
	if x.shared.manifest, err = x.shared.describedBy(&answer); err != nil {
		return err
	}
	return spawn.KeyErrors(answer.Errors)
}

// Start starts the process for good. It blocks until the component in it has started.
func (x *proxy) Start(h *component.Host) error {
	x.shared.h, x.shared.meters, x.shared.spans = h, newMeters(h.Stats, h.Name), newSpans(h)
	for i := range x.shared.manifest.Signals {
		x.shared.signals = append(x.shared.signals, h.Signal(x.shared.manifest.Signals[i].Name))
		x.shared.carry = append(x.shared.carry, component.PayloadOf(x.shared.manifest.Signals[i].Payload))
	}
	x.shared.slots = make([]slot, len(x.shared.manifest.Slots))
	for i, p := range x.shared.manifest.Slots {
		x.shared.slots[i].carries = component.PayloadOf(p.Payload)
		x.shared.slots[i].bound = h.Slot(p.Name, func(m *hostabi.Message) { x.send(i, m) })
	}
	for i := range x.shared.manifest.Requests {
		name := x.shared.manifest.Requests[i].Name
		h.HandleAnywhere(name, x.request(name)) // the process has a loop of its own
	}
	x.began = x.keeps()
	x.setState(component.ProcessStarting)
	l, err := x.shared.startSession(x.saveNow)
	if err != nil {
		return err
	}
	x.begin(l, nil)
	go x.supervise(l)
	return nil
}

// Stop ends the process and releases everything.
func (x *proxy) Stop() error {
	x.stop.Do(func() { x.stopFn = x.finish() })
	return x.stopFn
}
