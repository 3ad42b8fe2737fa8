package author

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	sdk "github.com/rlhost/rlhost/sdk/component"
)

// Kind returns the maker of unconfigured components of an author's kind.
func Kind(make func() sdk.Component) func() component.Component {
	return func() component.Component { return &authored{author: make()} }
}

// authored is a component that an author has written.
type authored struct {
	author sdk.Component
	policy string // that its table names, whose requests it answers
	host   *host  // nil before Start
}

var (
	_ component.Component = (*authored)(nil)
	_ component.Pauser    = (*authored)(nil)
)

// Manifest returns the author's.
func (a *authored) Manifest() component.Manifest {
	m := a.author.Manifest()
	return component.Manifest{Signals: ports(m.Signals), Slots: ports(m.Slots), Requests: m.Requests, Asks: m.Asks}
}

func ports(list []sdk.Port) []component.Port {
	all := make([]component.Port, len(list))
	for i, p := range list {
		all[i] = component.Port{Name: p.Name, Payload: p.Payload, Doc: p.Doc, Schema: p.Schema, OnLoan: component.PayloadOf(p.Payload).Answers}
	}
	return all
}

// Configure lets the author check the table.
func (a *authored) Configure(decode func(into any) error) error {
	table := map[string]any{}
	if err := decode(&table); err != nil {
		return err
	}
	a.policy, _ = table["policy"].(string)
	return configError(a.author.Configure(decode))
}

// configError makes the host's errors of the author's.
func configError(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range joined.Unwrap() {
			errs = append(errs, configError(one))
		}
		return errors.Join(errs...)
	}
	var e *sdk.ConfigError
	if errors.As(err, &e) {
		return &component.ConfigError{Key: e.Key, Reason: e.Reason, Help: e.Help}
	}
	return err
}

// Start starts the author's component.
func (a *authored) Start(h *component.Host) error {
	a.host = &host{wide: h, policy: a.policy, open: map[claim]struct{}{}, views: map[uint8]view{}}
	return a.author.Start(a.host)
}

// Snapshot returns the author's bytes as they are. Where blocks are leased or on loan there is no state: a run that continued from it
// would not have them.
func (a *authored) Snapshot() (component.State, error) {
	if a.host != nil && len(a.host.open) > 0 {
		return component.State{}, fmt.Errorf("%w: it keeps blocks (%d), which are no part of a state", component.ErrNoSnapshot, len(a.host.open))
	}
	b, err := a.author.Snapshot()
	if err != nil || b == nil {
		return component.State{}, err
	}
	return component.State{Blobs: map[string][]byte{component.OpaqueBlob: b}}, nil
}

// Restore gives them back.
func (a *authored) Restore(s component.State) error {
	return a.author.Restore(s.Blobs[component.OpaqueBlob])
}

// Pause makes the author's component finish the work that it has begun.
func (a *authored) Pause(rested func()) {
	if p, ok := a.author.(sdk.Pauser); ok {
		a.failOn(p.Pause())
	}
	rested()
}

// Resume ends a pause.
func (a *authored) Resume() {
	if p, ok := a.author.(sdk.Pauser); ok {
		a.failOn(p.Resume())
	}
}

func (a *authored) failOn(err error) {
	if err != nil {
		a.host.wide.Fail(err)
	}
}

// Waiting returns nothing: each message is handled before the next.
func (a *authored) Waiting() []component.Waiting { return nil }

// Stop stops the author's component and ends the leases and loans that it has left.
func (a *authored) Stop() error {
	err := a.author.Stop()
	if a.host == nil {
		return err
	}
	for x := range a.host.open {
		err = errors.Join(err, x.end())
	}
	return err
}
