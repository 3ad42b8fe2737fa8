package builtin

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// slight is a backend that computes no dense layers.
type slight struct{ policy.Backend }

func (slight) Name() string { return "slight" }

func (slight) Compile(n *policy.Network) (policy.Program, error) {
	return nil, policy.Unsupported("node", n.Nodes[0].Name, &layer.Dense{Out: 64})
}

// A network that a backend does not compute is an error of the key net, which names the node and what to do.
func TestDecodePolicy_NamesTheNodeThatABackendLacks(t *testing.T) {
	_, err := DecodePolicyFor(slight{})(func(any) error { return nil }, dict())
	bad := (*component.ConfigError)(nil)
	if !errors.As(err, &bad) || bad.Code != "E047" || bad.Key != "net" || bad.Help != "change the node that it names, or take another backend" {
		t.Fatalf("%v", err)
	}
	if want := `cannot be computed by backend "slight": network: node `; !strings.HasPrefix(bad.Reason, want) || !strings.Contains(bad.Reason, "dense") {
		t.Errorf("%q, want %q and what is not there", bad.Reason, want)
	}
}

// A Box without bounds is neither rescaled nor squashed; the message names the key that asks for it, and what turns it off.
func TestDecodePolicy_RefusesToScaleWithoutBounds(t *testing.T) {
	open := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Flags: hostabi.TensorNoHigh}
	open.Shape[0] = 2
	env := dict()
	env.Tensors[0] = open
	for key, c := range map[string]struct {
		action Action
		help   string
	}{
		"action.rescale": {Action{LogStd: "free", Squash: "none", Rescale: true}, "set it to false, or give the environment's action finite bounds"},
		"action.squash":  {Action{LogStd: "free", Squash: "tanh"}, `set it to "none", or give the environment's action finite bounds`},
	} {
		_, err := DecodePolicy(func(into any) error { into.(*PolicyTable).Action = c.action; return nil }, env)
		if bad := (*component.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != key || bad.Help != c.help {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := DecodePolicy(func(any) error { return nil }, env); err != nil {
		t.Errorf("drawn in its own units: %v", err)
	}
}
