// Gorgonia-learner is a native plugin whose learner trains a network and a loss that are written as gorgonia graphs,
// in graph.go. All else is rlhost's own learner. See README.md.
package main

import (
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/inference"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/sdk/process"
)

func main() {
	process.Serve(process.Plugin{
		Kinds: map[string]func() component.Component{"learner": learner.New, "inference": inference.New},
		Docs: map[string]string{
			"learner":   "PPO with your own loss",
			"inference": "acts with your own network",
		},
		Policy: decodePolicy,
	})
}

// table is a [policy.NAME] table.
type table struct {
	Backend string `toml:"backend"` // the host's, for evaluations
	Net     struct {
		Kind       string `toml:"kind"`
		Hidden     []int  `toml:"hidden"`
		Activation string `toml:"activation"`
	} `toml:"net"`
	ShareTrunk   bool `toml:"share_trunk"`
	NormalizeObs bool `toml:"normalize_obs"`
}

// decodePolicy makes the policy of a table for an environment: rlhost's network, computed by the graphs of graph.go.
func decodePolicy(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
	var t table
	t.Net.Hidden, t.Net.Activation = []int{64, 64}, string(policy.Tanh)
	if err := decode(&t); err != nil {
		return nil, err
	}
	if t.Net.Kind != "" && t.Net.Kind != "mlp" {
		return nil, &component.ConfigError{Key: "net.kind", Reason: fmt.Sprintf("is %q", t.Net.Kind), Help: "this plugin has: mlp"}
	}
	d := &policy.Definition{
		Backend: &gorgonia.Backend{Builder: network{}, Loss: loss},
		Network: policy.MLP{
			Obs: env.ObsElems(), Actions: env.Actions(), Hidden: t.Net.Hidden,
			Activation: policy.Activation(t.Net.Activation), ShareTrunk: t.ShareTrunk, NormalizeObs: t.NormalizeObs,
		}.Network(),
	}
	return d, d.Network.Validate()
}
