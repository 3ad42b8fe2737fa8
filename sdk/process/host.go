package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// newHost makes the component's host from the configuration of the real one.
func (x *instance) newHost(s *server) *component.Host {
	t := &x.told
	return &component.Host{
		Name: t.Name, ID: t.ID, Index: t.Index, Count: t.Count, Run: runOf(&t.Run),
		Receiver: x.loop.NewReceiver(t.Name), Arenas: x.arenas, Stats: x.stats.registry, Log: s.log,
		Env: x.env, Policy: x.policy(),
		Peers:   func(kind string) int { return t.Peers[kind] },
		Readers: func(signal string) int { return t.Readers[signal] },
		Grants:  t.Grants, Written: t.Written,
		SoA:      func() (soa, known bool) { return t.SoA != nil && *t.SoA, t.SoA != nil },
		AskOther: x.askOther,
		Tables:   x.tables, Boundary: x.boundary, Stop: x.stopRun,
		Succession: component.Succession{FirstEnv: t.FirstEnv, Published: t.Published, Begun: t.Begun, Abrupt: t.Abrupt},
	}
}

func runOf(r *native.Run) *component.Run {
	run := &component.Run{
		Name: r.Name, Seed: uint64(r.Seed), Policy: r.Policy, Dir: r.Dir, Synchronous: r.Synchronous, Resumes: r.Resumes,
		Stop: component.StopRule{Return: r.StopReturn, Window: r.StopWindow, EnvSteps: r.StopEnvSteps, WallTime: time.Duration(r.StopWallNS)},
	}
	for name, rule := range r.StopPolicies {
		if run.Stop.Policies == nil {
			run.Stop.Policies = map[string]component.PolicyRule{}
		}
		run.Stop.Policies[name] = component.PolicyRule(rule)
	}
	return run
}

// policy returns Host.Policy, which makes each policy once.
func (x *instance) policy() func(name string) (component.Policy, error) {
	made := map[string]component.Policy{}
	return func(name string) (component.Policy, error) {
		if p, ok := made[name]; ok {
			return p, nil
		}
		doc, ok := x.told.Policies[name]
		if !ok {
			return nil, fmt.Errorf("policy %q is not declared", name)
		}
		if x.server.plugin.Policy == nil {
			return nil, fmt.Errorf("policy %q: this plugin makes no policies: set Plugin.Policy", name)
		}
		spec, err := x.spec(doc.Env)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", name, err)
		}
		if doc.Group < 0 || doc.Group >= max(len(spec.Groups), 1) {
			return nil, fmt.Errorf("policy %q plays group %d, which %s has not", name, doc.Group, spec.Name)
		}
		spec = spec.OfGroup(doc.Group)
		p, err := x.server.plugin.Policy(tableOf(doc.Table), &spec)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %w", name, err)
		}
		made[name] = p
		return p, nil
	}
}

func (x *instance) spec(env string) (hostabi.EnvSpec, error) {
	doc, ok := x.told.Envs[env]
	if !ok {
		return hostabi.EnvSpec{}, fmt.Errorf("env %q is not declared", env)
	}
	return doc.Decode()
}

// env returns Host.Env. An environment that the plugin cannot load runs elsewhere and is only described. It runs on the
// goroutine of Start.
func (x *instance) env(name string) (env.Plugin, error) {
	if p := x.loaded[name]; p != nil {
		return p, nil
	}
	doc, ok := x.told.Sources[name]
	if !ok || x.server.plugin.Load == nil {
		spec, err := x.spec(name)
		if err != nil {
			return nil, err
		}
		return described{spec}, nil
	}
	var source env.Source
	if err := json.Unmarshal(doc, &source); err != nil {
		return nil, fmt.Errorf("env %q: %w", name, err)
	}
	p, err := x.server.plugin.Load(context.Background(), source)
	if err != nil {
		return nil, fmt.Errorf("env %q: %w", name, err)
	}
	x.loaded[name] = p
	return p, nil
}

// unload closes the environments that env has loaded.
func (x *instance) unload() error {
	var errs []error
	for _, p := range x.loaded {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// described is an environment that cannot be made here.
type described struct{ spec hostabi.EnvSpec }

var _ env.Plugin = described{}

// Spec returns the environment's description.
func (d described) Spec() hostabi.EnvSpec { return d.spec }

// Hash returns "": the source is not here.
func (d described) Hash() string { return "" }

// NewEnv returns an error.
func (d described) NewEnv(env.Options) (env.Env, error) {
	return nil, fmt.Errorf("environment %s in the process of a component: %w", d.spec.Name, env.ErrUnsupported)
}

// Close does nothing.
func (d described) Close() error { return nil }

// tables returns Host.Tables. Environments whose description cannot be read are missing.
func (x *instance) tables() component.Tables {
	t := component.Tables{
		Policies: map[string]component.PolicyTable{}, Envs: map[string]hostabi.EnvSpec{}, Peers: x.told.Peers,
	}
	for name, p := range x.told.Policies {
		t.Policies[name] = component.PolicyTable{Env: p.Env, Table: table.Map(table.Plain(p.Table)), Memory: trajectory.Memory(p.Memory),
			Of: p.Of, From: p.From, Version: p.Version, Group: p.Group}
	}
	for name := range x.told.Envs {
		if spec, err := x.spec(name); err == nil {
			t.Envs[name] = spec
		}
	}
	return t
}

// releaseUnsent releases the blocks of messages that the host has not finished. The host has its own claims on the
// blocks that it needs.
func (x *instance) releaseUnsent() error {
	var errs []error
	for _, p := range x.link.Unfinished() {
		if p.Claimed {
			errs = append(errs, x.arenas.Release(p.Message.Handle))
		}
	}
	return errors.Join(errs...)
}

func panicError(v any) error { return fmt.Errorf("panic: %v\n%s", v, debug.Stack()) }
