package builtin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
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

// A network that a backend does not compute is an error of the key net, which names the node and the remedy.
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

// A Box without bounds is neither rescaled nor squashed; the message names the key that asks for it, and the value that turns it off.
func TestDecodePolicy_RefusesToScaleWithoutBounds(t *testing.T) {
	open := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Flags: hostabi.TensorNoHigh}
	open.Shape[0] = 2
	env := dict()
	env.Tensors[0] = open
	for key, c := range map[string]struct {
		action Action
		help   string
	}{
		"action.rescale": {Action{Rescale: true}, "set it to false, or give the environment's action finite bounds"},
		"action.squash":  {Action{Squash: "tanh"}, `set it to "none", or give the environment's action finite bounds`},
	} {
		_, err := DecodePolicy(c.action.decode, env)
		if bad := (*component.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != key || bad.Help != c.help {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := DecodePolicy(func(any) error { return nil }, env); err != nil {
		t.Errorf("drawn in its own units: %v", err)
	}
}

// A network's size is a product of the widths in its graph: a network that is too large is refused before any part of it is made.
func TestDecodePolicy_RefusesLargeNetworksBeforeTheyAreMade(t *testing.T) {
	doublings := make([]any, 24)
	for i, last := 0, "obs"; i < len(doublings); i++ {
		name := fmt.Sprintf("n%d", i)
		doublings[i] = map[string]any{"name": name, "in": []any{last, last}, "concat": map[string]any{}}
		last = name
	}
	wide := func(n, width int) map[string]any {
		return map[string]any{"hidden": slices.Repeat([]any{int64(width)}, n)}
	}
	for name, c := range map[string]struct {
		net     map[string]any
		want    string
		largest string
	}{
		"two of 10,000":   {wide(2, 10000), "has 200160004 parameters, 100010000 of them in actor.1: more than limits.parameters, 100000000", "raise the limit: limits = { parameters = 200160004 }"},
		"eight of 16,384": {wide(8, 16384), "has 3758", "make what actor.1 reads or computes narrower"},
		"one of 1e9": {map[string]any{"nodes": []any{node("a", "obs", "dense", map[string]any{"out": int64(1e9)})}},
			"of them in a: more than limits.parameters", "make what a reads or computes narrower"},
		"doubled": {map[string]any{"nodes": doublings}, "of them in actor.head: more than limits.parameters", "limits = { parameters = "},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := DecodePolicy(from(map[string]any{"net": c.net}), pictures(4))
			runtime.ReadMemStats(&after)
			bad := (*component.ConfigError)(nil)
			if !errors.As(err, &bad) || bad.Code != "E098" || bad.Key != "net" || !strings.Contains(bad.Reason, c.want) || !strings.Contains(bad.Help, c.largest) {
				t.Fatalf("%v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
				t.Errorf("%d bytes to refuse it", took)
			}
		})
	}
}

// A network within its limit is compiled for validation without an index of its parameters, which are 80 MB here.
func TestDecodePolicy_MakesNothingForEachParameter(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := DecodePolicy(from(map[string]any{"net": map[string]any{"hidden": []any{int64(3000), int64(3000)}}}), pictures(4))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes for a network of %d parameters", took, p.(*policy.Definition).Network.ParamCount())
	}
}

// The limit is a number that backends can find parameters by.
func TestPolicy_LimitsAreChecked(t *testing.T) {
	for _, n := range []int64{0, -1, 1_000_000_001} {
		_, err := readPolicy(from(map[string]any{"limits": map[string]any{"parameters": n}}))
		if bad := (*component.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "limits.parameters" {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// init_gain is the gain of every layer before the heads, of any kind of network but of nodes, which have their own.
func TestDecodePolicy_InitGain(t *testing.T) {
	for kind, env := range map[string]*hostabi.EnvSpec{"mlp": dict(), "nature_cnn": pictures(36, 36, 1)} {
		p, err := DecodePolicy(from(map[string]any{"net": map[string]any{"kind": kind, "init_gain": 0.5}}), env)
		if err != nil {
			t.Fatal(kind, err)
		}
		layers := 0
		for _, n := range p.(*policy.Definition).Network.Nodes {
			want := 0.5
			switch n.Name {
			case "actor.head":
				want = 0.01
			case "critic.head":
				want = 1
			}
			switch {
			case n.Dense != nil && n.Dense.Gain != want, n.Conv2D != nil && n.Conv2D.Gain != want:
				t.Errorf("%s: %s has another gain than %v: %v %v", kind, n.Name, want, n.Dense, n.Conv2D)
			case n.Dense != nil || n.Conv2D != nil:
				layers++
			}
		}
		if layers < 5 {
			t.Errorf("%s: %d layers with gains", kind, layers)
		}
	}
	nodes := []any{map[string]any{"name": "trunk", "in": []any{"obs"}, "dense": map[string]any{"out": int64(8)}}}
	for _, net := range []map[string]any{{"init_gain": 0.0}, {"init_gain": 101.0}, {"init_gain": 1.0, "nodes": nodes}} {
		_, err := readPolicy(from(map[string]any{"net": net}))
		if bad := (*component.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "net.init_gain" || bad.Help == "" {
			t.Errorf("%v: %v", net, err)
		}
	}
}

// critic_inputs are read by the value alone, in parts of the network that share nothing with the policy's.
func TestDecodePolicy_CriticInputs(t *testing.T) {
	p, err := DecodePolicy(from(map[string]any{"critic_inputs": []any{"near/*", "eye"}}), dict())
	if err != nil {
		t.Fatal(err)
	}
	n := p.(*policy.Definition).Network
	acting, read := n.Acting(), map[string]bool{}
	for _, node := range n.Nodes {
		for _, in := range node.In {
			read[in] = true
		}
		if acting[node.Name] == strings.HasPrefix(node.Name, "critic.") {
			t.Errorf("node %s: actions depend on it: %t", node.Name, acting[node.Name])
		}
	}
	for path, want := range map[string]bool{"speed": true, "eye": false, "near/door": false, "near/place": false} {
		if acting[path] != want || !read[path] {
			t.Errorf("%s: actions depend on it: %t, something reads it: %t", path, acting[path], read[path])
		}
	}
	core := map[string]any{"core": map[string]any{"kind": "gru"}}
	for reason, keys := range map[string]map[string]any{
		"matches nothing":    {"critic_inputs": []any{"taste"}},
		"nothing to read":    {"critic_inputs": []any{"*"}},
		"share a trunk":      {"critic_inputs": []any{"eye"}, "share_trunk": true},
		"next to a core":     {"critic_inputs": []any{"eye"}, "net": core},
		"a network of nodes": {"critic_inputs": []any{"eye"}, "net": map[string]any{"nodes": []any{node("trunk", "obs", "dense", map[string]any{"out": int64(8)})}}},
		"or of one picture":  {"critic_inputs": []any{"eye"}, "net": map[string]any{"kind": "nature_cnn"}},
	} {
		_, err := DecodePolicy(from(keys), dict())
		if bad := (*component.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "critic_inputs" || !strings.Contains(bad.Reason, reason) || bad.Help == "" {
			t.Errorf("%v: %v, want one with %q", keys, err, reason)
		}
	}
}

// decode reads a table that has these keys of action, where they are not zero.
func (a Action) decode(into any) error {
	to := &into.(*PolicyTable).Action
	to.LogStd, to.Squash, to.Rescale = cmp.Or(a.LogStd, to.LogStd), cmp.Or(a.Squash, to.Squash), a.Rescale
	to.LogStdInit, to.LogStdMin, to.LogStdMax = a.LogStdInit, cmp.Or(a.LogStdMin, to.LogStdMin), cmp.Or(a.LogStdMax, to.LogStdMax)
	return nil
}

// The network's description has bounds of deviations only where they are not the default ones, so that networks of older checkpoints
// do not change.
func TestDecodePolicy_BoundsDeviations(t *testing.T) {
	env := dict()
	env.Tensors[0] = hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Low: -1, High: 1}
	env.Tensors[0].Shape[0] = 1
	for text, a := range map[string]Action{
		`"gaussian":{"n":1}`: {LogStdMin: -5, LogStdMax: 2},
		`"gaussian":{"n":1,"log_std":{"min":-3,"max":0.5}}`: {LogStdMin: -3, LogStdMax: 0.5, LogStd: policy.NetworkStd},
	} {
		p, err := DecodePolicy(a.decode, env)
		if err != nil {
			t.Fatal(err)
		}
		n := p.(*policy.Definition).Network
		said, err := json.Marshal(&n)
		if err != nil || !strings.Contains(string(said), text) {
			t.Errorf("%+v: %s (%v), want %s", a, said, err, text)
		}
		var read policy.Network
		if err := json.Unmarshal(said, &read); err != nil || read.Hash() != n.Hash() {
			t.Errorf("%+v: read again it is another network: %v (%v)", a, read.Lines(), err)
		}
	}
	for key, a := range map[string]Action{
		"log_std_min":   {LogStdMin: 2, LogStdMax: 2},
		"log_std_min ":  {LogStdMin: -21},
		"log_std_min\t": {LogStdMin: math.NaN()},
		"log_std_init":  {LogStdInit: 3},
		"log_std_init ": {LogStdMin: 1},
	} {
		_, err := DecodePolicy(a.decode, env)
		if bad := (*component.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "action."+strings.TrimSpace(key) || bad.Help == "" {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// A deviation that does not suit the bounds is doubted, with the element and the remedy; a deviation that does, or has no bounds, is not.
func TestDecodePolicy_DoubtsDeviationsThatDoNotSuitTheBounds(t *testing.T) {
	for name, c := range map[string]struct {
		bound  float32
		action Action
		want   string
	}{
		"as wide as the bounds":  {2, Action{}, ""},
		"five times the range":   {0.1, Action{}, "5 times the range from -0.1 to 0.1"},
		"a hundredth":            {50, Action{}, "0.01 times the range from -50 to 50"},
		"rescaled":               {0.1, Action{Rescale: true}, ""},
		"rescaled, and too wide": {0.1, Action{Rescale: true, LogStdInit: 1.8}, "3.02 times the range"},
		"squashed":               {0.1, Action{Squash: "tanh"}, ""},
		"without bounds":         {policy.Unbounded, Action{}, ""},
		"of the state":           {0.1, Action{LogStd: policy.NetworkStd}, "5 times the range"},
	} {
		box := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Low: -c.bound, High: c.bound}
		box.Shape[0] = 2
		env := dict()
		env.Tensors[0] = box
		p, err := DecodePolicy(c.action.decode, env)
		if err != nil {
			t.Fatal(name, err)
		}
		doubt := p.(component.Doubtful).Doubt()
		if (doubt == nil) != (c.want == "") || doubt != nil && (!strings.Contains(doubt.Reason, c.want) || doubt.Key != "action" || doubt.Help == "") {
			t.Errorf("%s: %v, want %q", name, doubt, c.want)
		}
	}
}
