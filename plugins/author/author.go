package author

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	sdk "github.com/rlhost/rlhost/sdk/component"
)

// Kind returns what makes an unconfigured component of a kind that an author has written.
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
func (c *authored) Manifest() component.Manifest {
	m := c.author.Manifest()
	return component.Manifest{Signals: ports(m.Signals), Slots: ports(m.Slots)}
}

func ports(list []sdk.Port) []component.Port {
	all := make([]component.Port, len(list))
	for i, p := range list {
		all[i] = component.Port{Name: p.Name, Payload: p.Payload, Doc: p.Doc, Schema: p.Schema, OnLoan: component.PayloadOf(p.Payload).Answers}
	}
	return all
}

// Configure lets the author check the table.
func (c *authored) Configure(decode func(into any) error) error {
	table := map[string]any{}
	if err := decode(&table); err != nil {
		return err
	}
	c.policy, _ = table["policy"].(string)
	return configError(c.author.Configure(decode))
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
func (c *authored) Start(h *component.Host) error {
	c.host = &host{wide: h, policy: c.policy, open: map[claim]struct{}{}, views: map[uint8]view{}}
	return c.author.Start(c.host)
}

// Snapshot returns the author's bytes as they are. Where blocks are leased or lent there is no state: a run that continued from it would
// not have them.
func (c *authored) Snapshot() (component.State, error) {
	if c.host != nil && len(c.host.open) > 0 {
		return component.State{}, fmt.Errorf("%w: it keeps blocks (%d), which are no part of a state", component.ErrNoSnapshot, len(c.host.open))
	}
	b, err := c.author.Snapshot()
	if err != nil || b == nil {
		return component.State{}, err
	}
	return component.State{Blobs: map[string][]byte{component.OpaqueBlob: b}}, nil
}

// Restore gives them back.
func (c *authored) Restore(s component.State) error {
	return c.author.Restore(s.Blobs[component.OpaqueBlob])
}

// Pause has the author's component finish what it has begun. It is at rest then.
func (c *authored) Pause(rested func()) {
	if p, ok := c.author.(sdk.Pauser); ok {
		c.failOn(p.Pause())
	}
	rested()
}

// Resume ends a pause.
func (c *authored) Resume() {
	if p, ok := c.author.(sdk.Pauser); ok {
		c.failOn(p.Resume())
	}
}

func (c *authored) failOn(err error) {
	if err != nil {
		c.host.wide.Fail(err)
	}
}

// Waiting returns nothing: each message is handled before the next.
func (c *authored) Waiting() []component.Waiting { return nil }

// Stop stops the author's component and ends the leases and loans that it has left.
func (c *authored) Stop() error {
	err := c.author.Stop()
	if c.host == nil {
		return err
	}
	for x := range c.host.open {
		err = errors.Join(err, x.end())
	}
	return err
}
