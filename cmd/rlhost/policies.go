package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
)

// policyTable is a [policy.NAME] table.
type policyTable struct {
	Backend      string `toml:"backend"`
	Net          net    `toml:"net"`
	ShareTrunk   bool   `toml:"share_trunk"`
	NormalizeObs bool   `toml:"normalize_obs"`
}

type net struct {
	Kind       string `toml:"kind"`
	Hidden     []int  `toml:"hidden"`
	Activation string `toml:"activation"`
}

func policyDefaults() policyTable {
	return policyTable{Backend: "cpu", Net: net{Kind: "mlp", Hidden: []int{64, 64}, Activation: "tanh"}}
}

// backends are what policies may be computed by.
func backends() map[string]func() policy.Backend {
	return map[string]func() policy.Backend{"cpu": func() policy.Backend { return cpu.New() }}
}

// decodePolicy makes the policy of a table for an environment.
func decodePolicy(decode func(into any) error, env *hostabi.EnvSpec) (any, error) {
	t, err := readPolicy(decode)
	if err != nil {
		return nil, err
	}
	d := &policy.Definition{
		Backend: backends()[t.Backend](),
		Network: policy.Network{
			Obs: env.ObsElems(), Actions: env.Actions(), Hidden: t.Net.Hidden,
			Activation: policy.Activation(t.Net.Activation), ShareTrunk: t.ShareTrunk, NormalizeObs: t.NormalizeObs,
			HiddenGain: math.Sqrt2, PolicyGain: 0.01, ValueGain: 1,
		},
	}
	return d, d.Network.Validate()
}

// checkPolicy checks a table without an environment.
func checkPolicy(decode func(into any) error) error {
	_, err := readPolicy(decode)
	return err
}

func readPolicy(decode func(into any) error) (policyTable, error) {
	t := policyDefaults()
	if err := decode(&t); err != nil {
		return t, err
	}
	var errs []error
	bad := func(key, reason, help string) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: reason, Help: help})
	}
	if backends()[t.Backend] == nil {
		bad("backend", fmt.Sprintf("is %q", t.Backend), "this program has: cpu")
	}
	if t.Net.Kind != "mlp" {
		bad("net.kind", fmt.Sprintf("is %q", t.Net.Kind), "this version has: mlp")
	}
	switch policy.Activation(t.Net.Activation) {
	case policy.Tanh, policy.ReLU, policy.ELU:
	default:
		bad("net.activation", fmt.Sprintf("is %q", t.Net.Activation), "use tanh, relu or elu")
	}
	if len(t.Net.Hidden) == 0 || len(t.Net.Hidden) > 16 {
		bad("net.hidden", fmt.Sprintf("has %d layers", len(t.Net.Hidden)), "use 1 to 16 widths, such as [64, 64]")
	}
	for _, width := range t.Net.Hidden {
		if width < 1 || width > 1<<14 {
			bad("net.hidden", fmt.Sprintf("has a layer of width %d", width), "use 1 to 16384")
			break
		}
	}
	return t, errors.Join(errs...)
}
