package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// Options say which policy a program computes.
type Options struct {
	Policy string           // its name, for messages
	Args   map[string]any   // for the program alone
	Env    *hostabi.EnvSpec // of the agents that it plays
	Seed   uint64           // for what it draws
}

// Backend computes one policy by a program. It implements policy.Backend.
type Backend struct {
	runtime *spawn.Runtime
	program spawn.Program
	wanted  native.PolicyWanted
	made    native.PolicyMade

	mu    sync.Mutex
	spare *process // has made the policy, for the next actor; nil if there is none
	end   *time.Timer
}

// keepSpare is how long a process that has described its policy waits to act: frameworks take seconds to start.
const keepSpare = 20 * time.Second

// Open starts a process of the program, which describes the policy. The errors are *spawn.Error, or ctx's.
func Open(ctx context.Context, r *spawn.Runtime, program spawn.Program, o Options) (*Backend, error) {
	b := &Backend{runtime: r, program: program.WithDefaults(), wanted: native.PolicyWanted{
		Name: o.Policy, Table: o.Args, Env: *native.EncodeSpec(o.Env), Seed: native.U64(o.Seed)}}
	p, made, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	b.made = *made
	b.keep(p)
	return b, nil
}

// Weights are the tensors of parameters of the program's policy.
func (b *Backend) Weights() []layer.Weight { return weightsOf(&b.made) }

func weightsOf(m *native.PolicyMade) (list []layer.Weight) {
	for _, w := range m.Weights {
		list = append(list, layer.Weight{Name: w.Name, Shape: w.Shape})
	}
	return list
}

// State is the number of elements that the policy keeps for each row.
func (b *Backend) State() int { return b.made.State }

// Described is the program's description of its policy as a network that is computed elsewhere, nil if it has none.
func (b *Backend) Described() []byte { return b.made.Network }

// Close ends the process that waits for an actor, if one does. Actors end by themselves.
func (b *Backend) Close() error {
	if p := b.waiting(); p != nil {
		return p.close()
	}
	return nil
}

// Name is the program's.
func (b *Backend) Name() string { return b.program.Name }

// Kernels is the program's name: its numbers are its own.
func (b *Backend) Kernels() string { return b.program.Name }

// Compile accepts the program's own network alone.
func (b *Backend) Compile(n *policy.Network) (policy.Program, error) {
	e := n.External()
	if e == nil {
		return nil, fmt.Errorf("network: no part of it is computed by plugin %q: %w", b.program.Name, policy.ErrUnsupported)
	}
	if why := differs(e.Weights, b.Weights()); why != "" || e.Keeps != b.made.State {
		return nil, fmt.Errorf("network: plugin %q computes another policy than this one: %s: %w", b.program.Name,
			orText(why, fmt.Sprintf("a state of %d elements, and its own is %d", e.Keeps, b.made.State)), policy.ErrUnsupported)
	}
	return &computed{b, n.Clone()}, nil
}

// differs names the first tensor that two lists do not share.
func differs(saved, now []layer.Weight) string {
	for i := range max(len(saved), len(now)) {
		switch {
		case i >= len(saved):
			return fmt.Sprintf("it has a tensor more, %q", now[i].Name)
		case i >= len(now):
			return fmt.Sprintf("it has no tensor %q", saved[i].Name)
		case saved[i].Name != now[i].Name || !slices.Equal(saved[i].Shape, now[i].Shape):
			return fmt.Sprintf("tensor %d is %q of shape %v, and its own %q of %v", i, saved[i].Name, saved[i].Shape, now[i].Name, now[i].Shape)
		}
	}
	return ""
}

func orText(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// computed is the program's network, as policy.Program.
type computed struct {
	backend *Backend
	network policy.Network
}

// NewActor starts a process, or takes the one that waits.
func (c *computed) NewActor(maxRows int) (policy.Actor, error) {
	p, err := c.backend.take(context.Background())
	if err != nil {
		return nil, err
	}
	a := newActor(c.backend, &c.network, maxRows)
	if err := a.adopt(p); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// keep has a process wait for an actor, for some time.
func (b *Backend) keep(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = p
	b.end = time.AfterFunc(keepSpare, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.spare == p {
			b.spare = nil
			_ = p.close() // nobody has used it
		}
	})
}

// waiting takes the process that waits for an actor, nil if there is none.
func (b *Backend) waiting() *process {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.spare
	b.spare = nil
	if b.end != nil {
		b.end.Stop()
	}
	return p
}

// take returns a process that has made the policy.
func (b *Backend) take(ctx context.Context) (*process, error) {
	p := b.waiting()
	if p != nil && !p.gone() {
		return p, nil
	}
	if p != nil {
		_ = p.close() // it died while it had nothing to do
	}
	p, made, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	if why := differs(weightsOf(&b.made), weightsOf(made)); why != "" || made.State != b.made.State {
		return nil, errors.Join(&spawn.Error{Code: spawn.CodeProtocol, Program: b.program.Name,
			Reason: "its policy is not what it was when it was described first: " + orText(why, "its state has another size"),
			Help:   "do not change its files while it runs, and let the network depend on nothing but the environment and args"}, p.close())
	}
	return p, nil
}

// start starts a process and has it make the policy.
func (b *Backend) start(ctx context.Context) (*process, *native.PolicyMade, error) {
	p, err := startProcess(ctx, b.runtime, b.program, b.wanted.Name)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.program.Start, spawn.ErrSlow)
	defer cancel()
	var made native.PolicyMade
	if err := p.Call(ctx, native.MethodPolicy, b.wanted, &made); err != nil {
		return nil, nil, errors.Join(unserved(b.program.Name, err), p.close())
	}
	return p, &made, nil
}

// unserved explains a program that computes no policy.
func unserved(program string, err error) error {
	var e *spawn.Error
	if !errors.As(err, &e) {
		return err
	}
	if code, _ := e.Refusal(); code != native.CodeUnsupported {
		return err
	}
	return &spawn.Error{Code: spawn.CodeKind, Program: program, Err: err, Reason: "it computes no policy",
		Help: "serve one: rlhost.serve(Learner, policy=MyPolicy); or leave `plugin` out of the policy's table, where a component of yours learns the host's network"}
}
