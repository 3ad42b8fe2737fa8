package builtin

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
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
	x := policy.External{Program: by.Plugin.Name, Inputs: storedInputs(env), Policy: actions, Weights: b.Weights(), State: b.State(), Chunk: defaultChunk}
	if t.Net.Chunk != nil {
		x.Chunk = *t.Net.Chunk
	}
	d := &policy.Definition{Backend: b, Network: x.Network()}
	if err := d.Network.Validate(); err != nil {
		return nil, &component.ConfigError{Code: codeNetwork, Key: "plugin", Reason: fmt.Sprintf("describes no network: %v", err), Help: "correct its parameters or its state"}
	}
	return d, t.Limits.check(d.Network.Size())
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
