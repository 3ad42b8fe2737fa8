package builtin

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

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
