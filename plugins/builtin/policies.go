package builtin

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"

	"github.com/rlhost/rlhost/gpu/policy"
)

// PolicyTable is a [policy.NAME] table.
type PolicyTable struct {
	Backend      string `toml:"backend"`
	Net          Net    `toml:"net"`
	ShareTrunk   bool   `toml:"share_trunk"`
	NormalizeObs bool   `toml:"normalize_obs"`
}

// Net is its key net: the layers between the observation and the heads.
type Net struct {
	Kind       string `toml:"kind"`
	Hidden     []int  `toml:"hidden"`
	Activation string `toml:"activation"`
}

func policyDefaults() PolicyTable {
	return PolicyTable{Backend: defaultBackend, Net: Net{Kind: "mlp", Hidden: []int{64, 64}, Activation: "tanh"}}
}

// DecodePolicy makes the policy of a table for an environment.
func DecodePolicy(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
	t, err := readPolicy(decode)
	if err != nil {
		return nil, err
	}
	d := &policy.Definition{
		Backend: backends()[t.Backend](),
		Network: policy.MLP{
			Obs: env.ObsElems(), Actions: env.Actions(), Hidden: t.Net.Hidden,
			Activation: policy.Activation(t.Net.Activation), ShareTrunk: t.ShareTrunk, NormalizeObs: t.NormalizeObs,
			HiddenGain: math.Sqrt2, PolicyGain: 0.01, ValueGain: 1,
		}.Network(),
	}
	return d, d.Network.Validate()
}

// checkPolicy checks a table without an environment.
func checkPolicy(decode func(into any) error) error {
	_, err := readPolicy(decode)
	return err
}

func readPolicy(decode func(into any) error) (PolicyTable, error) {
	t := policyDefaults()
	if err := decode(&t); err != nil {
		return t, err
	}
	var errs []error
	bad := func(key, reason, help string) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: reason, Help: help})
	}
	if backends()[t.Backend] == nil {
		bad("backend", fmt.Sprintf("is %q", t.Backend), "this program has: "+strings.Join(slices.Sorted(maps.Keys(backends())), ", "))
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
