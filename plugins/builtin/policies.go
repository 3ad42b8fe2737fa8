package builtin

import (
	"errors"
	"fmt"
	"maps"
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
	ShareTrunk   *bool  `toml:"share_trunk"` // false for mlp, true for networks over images, not for nodes
	NormalizeObs bool   `toml:"normalize_obs"`
}

// Net is its key net: the layers between the observation and the heads. What is left out is what suits the kind.
type Net struct {
	Kind       string         `toml:"kind"` // mlp, nature_cnn, impala, nodes
	Hidden     []int          `toml:"hidden"`
	Activation string         `toml:"activation"`
	Nodes      *[]policy.Node `toml:"nodes"`
}

func policyDefaults() PolicyTable {
	return PolicyTable{Backend: defaultBackend}
}

// DecodePolicy makes the policy of a table for an environment.
func DecodePolicy(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
	t, err := readPolicy(decode)
	if err != nil {
		return nil, err
	}
	if err := env.Learnable(); err != nil {
		return nil, err
	}
	d := &policy.Definition{Backend: backends()[t.Backend](), Network: t.network(env)}
	if err := d.Network.Validate(); err != nil {
		return nil, &component.ConfigError{Key: "net", Reason: "does not suit the environment: " + err.Error(), Help: "change the node that it names"}
	}
	if _, err := d.Backend.Compile(&d.Network); err != nil {
		return nil, &component.ConfigError{Key: "net", Reason: fmt.Sprintf("cannot be computed by backend %q: %v", t.Backend, err),
			Help: "change the node that it names, or take another backend"}
	}
	return d, nil
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
	t.expand(bad)
	return t, errors.Join(errs...)
}
