package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/process/actor"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// policyBy makes a policy that a plugin's program computes; see graph.Parts.
func (e *Engines) policyBy(by graph.PolicyProgram, decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
	t, err := readPolicy(decode)
	if err != nil {
		return nil, err
	}
	actions, err := t.Action.of(env)
	if err != nil {
		return nil, err
	}
	r, program, err := e.program(by.Plugin, by.Dir)
	if err != nil {
		return nil, err
	}
	b, err := actor.Open(context.Background(), r, program, actor.Options{Policy: by.Policy, Args: t.Args, Env: env, Seed: by.Seed})
	if err != nil {
		var known *spawn.Error
		if errors.As(err, &known) {
			return nil, &component.ConfigError{Code: known.Code, Key: "plugin", Reason: fmt.Sprintf("names plugin %q: %s", by.Plugin.Name, known.Reason), Help: known.Help}
		}
		return nil, err
	}
	chunk := defaultChunk
	if t.Net.Chunk != nil {
		chunk = *t.Net.Chunk
	}
	if t.Acts == actsHost {
		return t.described(by.Plugin.Name, b, env, actions, chunk)
	}
	x := policy.External{Program: by.Plugin.Name, Inputs: storedInputs(env), Policy: actions, Weights: b.Weights(), State: b.State(), Chunk: chunk}
	d := &policy.Definition{Backend: b, Network: x.Network()}
	if err := d.Network.Validate(); err != nil {
		return nil, &component.ConfigError{Code: codeNetwork, Key: "plugin", Reason: fmt.Sprintf("describes no network: %v", err), Help: "correct its parameters or its state"}
	}
	return d, t.Limits.check(d.Network.Size())
}

// described makes a policy of a program's description of its own, which the default backend computes.
func (t *PolicyTable) described(program string, b *actor.Backend, env *hostabi.EnvSpec, actions []policy.Dist, chunk int) (component.Policy, error) {
	text := b.Described()
	if err := b.Close(); err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, &component.ConfigError{Code: codeNetwork, Key: "acts", Reason: fmt.Sprintf("is \"host\", and plugin %q does not say what its policy computes", program),
			Help: "give its class a method describe(self, spec) that returns a rlhost.torch.Description; or leave acts out, and it acts in a process of its own"}
	}
	bad := func(why error) error {
		return &component.ConfigError{Code: codeNetwork, Key: "acts", Reason: fmt.Sprintf("is \"host\", and plugin %q describes a policy that the host cannot compute: %v", program, why),
			Help: "correct describe of its class; or leave acts out, and it acts in a process of its own"}
	}
	var n policy.Network
	if err := json.Unmarshal(text, &n); err != nil {
		return nil, bad(err)
	}
	if slices.ContainsFunc(n.Nodes, func(x policy.Node) bool { return x.Core() != nil }) {
		n.Chunk = chunk
	}
	if err := completed(&n, env, actions); err != nil {
		return nil, bad(err)
	}
	d := &policy.Definition{Backend: backends()[defaultBackend](), Network: n}
	if err := t.Limits.check(d.Network.Size()); err != nil {
		return nil, err
	}
	if _, err := d.Backend.Compile(&d.Network); err != nil {
		return nil, bad(err)
	}
	return d, nil
}

// completed adds to a description what this program knows: how the environment stores observations, and how actions are drawn.
func completed(n *policy.Network, env *hostabi.EnvSpec, actions []policy.Dist) error {
	if len(n.Policy) != len(actions) {
		return fmt.Errorf("it has %d actions, and the environment has %d", len(n.Policy), len(actions))
	}
	for i := range n.Policy {
		actions[i].From = n.Policy[i].From
	}
	n.Policy = actions
	stored, observed := storedInputs(env), env.All(hostabi.RoleObservation)
	for i := range n.Inputs {
		in := &n.Inputs[i]
		at := slices.IndexFunc(stored, func(s policy.Input) bool { return s.Path == in.Path })
		if at < 0 {
			return fmt.Errorf("the environment has no observation %q", in.Path)
		}
		if in.Norm == policy.Running || in.From != "" || in.Stack > 1 {
			return fmt.Errorf("input %q: a policy of a program's own has no statistics, no last actions and no frames that the host keeps", in.Path)
		}
		if layer.Elems(in.Shape) != layer.Elems(stored[at].Shape) {
			return fmt.Errorf("input %q has the shape %v, and the environment's is %v", in.Path, in.Shape, stored[at].Shape)
		}
		if in.DType = stored[at].DType; in.Norm == policy.OneHot {
			in.Choices, in.Start = choicesOf(&observed[at]), int(observed[at].Start)
		}
	}
	for i := range n.Nodes {
		if n.Nodes[i].External != nil {
			return fmt.Errorf("node %q is computed by a program", n.Nodes[i].Name)
		}
	}
	return n.Validate()
}

// unreadKeys are the keys of a policy's table that only the host's networks have; see graph.Parts.
func unreadKeys() []string {
	return []string{"backend", "net.kind", "net.hidden", "net.activation", "net.nodes", "net.init_gain", "net.core", "share_trunk", "normalize_obs", "inputs",
		"last_reward", "critic_inputs", "encoder", "frame_stack"}
}

// storedInputs are the observations of an environment as they are stored: the program prepares them itself.
func storedInputs(env *hostabi.EnvSpec) (inputs []policy.Input) {
	for i, tensor := range env.All(hostabi.RoleObservation) {
		in := policy.Input{Path: policy.ObsPath(env, i), Shape: axesOf(&tensor), DType: tensor.DType.String()}
		if len(in.Shape) == 0 {
			in.Shape = []int{1}
		}
		inputs = append(inputs, in)
	}
	return inputs
}
