package builtin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// from returns a decoder of a table.
func from(t map[string]any) func(into any) error {
	return func(into any) error { return table.Decode(table.Plain(t), into) }
}

// node is a node as a table has it.
func node(name, in, op string, attributes map[string]any) map[string]any {
	return map[string]any{"name": name, "in": []any{in}, op: attributes}
}

// pictures is an environment with observations of that shape.
func pictures(shape ...uint32) *hostabi.EnvSpec {
	obs := hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: uint8(len(shape))}
	copy(obs.Shape[:], shape)
	return &hostabi.EnvSpec{Tensors: []hostabi.Tensor{{Role: hostabi.RoleAction, DType: hostabi.I32, N: 3}, obs}}
}

func TestPolicy_KindsOfImagesAreWrittenOutAsNodes(t *testing.T) {
	for _, c := range []struct {
		keys   map[string]any
		prefix string
		convs  int
	}{
		{map[string]any{"net": map[string]any{"kind": "nature_cnn"}}, "trunk.", 3},
		{map[string]any{"net": map[string]any{"kind": "impala"}}, "trunk.", 15},
		{map[string]any{"net": map[string]any{"kind": "impala"}, "share_trunk": false}, "actor.", 30},
	} {
		got, err := readPolicy(from(c.keys))
		if err != nil {
			t.Fatal(err)
		}
		convs := 0
		for _, n := range *got.Net.Nodes {
			if n.Conv2D != nil {
				convs++
			}
		}
		if first := (*got.Net.Nodes)[0].Name; got.Net.Kind != kindNodes || convs != c.convs || !strings.HasPrefix(first, c.prefix) {
			t.Errorf("%v: kind %s with %d convolutions, the first node %s", c.keys, got.Net.Kind, convs, first)
		}
		p, err := DecodePolicy(from(c.keys), pictures(48, 48, 4))
		if err != nil {
			t.Fatal(err)
		}
		if d := p.(*policy.Definition); len(d.Network.Inputs[0].Shape) != 3 {
			t.Errorf("%v: an input of shape %v", c.keys, d.Network.Inputs[0].Shape)
		}
	}
}

func TestPolicy_MistakesInNetsAreNamed(t *testing.T) {
	dense := map[string]any{"out": int64(8)}
	nodes := func(list ...any) map[string]any { return map[string]any{"net": map[string]any{"nodes": list}} }
	trunk := node("trunk", "obs", "dense", dense)
	both := node("trunk", "obs", "dense", dense)
	both["flatten"] = map[string]any{}
	beside := nodes(trunk)
	beside["share_trunk"] = true
	encoded := nodes(trunk)
	encoded["encoder"] = map[string]any{"obs": map[string]any{"kind": "mlp"}}
	core := func(keys map[string]any) map[string]any { return map[string]any{"net": map[string]any{"core": keys}} }
	remembers := core(map[string]any{"kind": "lstm"})
	remembers["encoder"] = map[string]any{"obs": map[string]any{"stack": int64(4)}}
	for want, keys := range map[string]map[string]any{
		`net.core.kind is "" (use gru or lstm)`:                                             core(map[string]any{}),
		`net.core.kind is "rnn" (use gru or lstm)`:                                          core(map[string]any{"kind": "rnn"}),
		`net.core.size is 0 (use 1 to 16384)`:                                               core(map[string]any{"kind": "gru", "size": int64(0)}),
		`net.core.size is 20000 (use 1 to 16384)`:                                           core(map[string]any{"kind": "gru", "size": int64(20000)}),
		`net.chunk is 5000 (use 1 to 4096 rows)`:                                            {"net": map[string]any{"chunk": int64(5000), "core": map[string]any{"kind": "gru"}}},
		`net.core is given next to net.nodes`:                                               {"net": map[string]any{"nodes": []any{trunk}, "core": map[string]any{"kind": "gru"}}},
		`net.core.width`:                                                                    core(map[string]any{"kind": "gru", "width": int64(8)}),
		`encoder.obs.stack is given, and a layer of net keeps a state`:                      remembers,
		`net.kind is "cnn" (this version has: mlp, nature_cnn, impala, nodes)`:              {"net": map[string]any{"kind": "cnn"}},
		`net.nodes are given for the kind "mlp"`:                                            {"net": map[string]any{"kind": "mlp", "nodes": []any{trunk}}},
		`net.nodes are none`:                                                                nodes(),
		`net has hidden or activation next to nodes`:                                        {"net": map[string]any{"nodes": []any{trunk}, "activation": "relu"}},
		`encoder.obs has layers, and what reads the input is said by net`:                   encoded,
		`share_trunk is given next to net.nodes`:                                            beside,
		`net.nodes [0], "obs", has a name that is not free`:                                 nodes(node("obs", "obs", "dense", dense)),
		`net.nodes [0], "actor.head", has a name that is not free`:                          nodes(node("actor.head", "obs", "dense", dense)),
		`net.nodes [0], "trunk", has the name of [1]`:                                       nodes(trunk, trunk),
		`net.nodes [0], "trunk", has 2 operations`:                                          nodes(both),
		`give it one of: dense, activation, conv2d, maxpool, add, concat, flatten, layerno`: nodes(map[string]any{"name": "trunk", "in": []any{"obs"}}),
		`net.nodes [0], "a", reads "b", which is not before it`:                             nodes(node("a", "b", "dense", dense), node("b", "a", "dense", dense)),
		`net.nodes [0], "a", reads "a", which is not before it`:                             nodes(node("a", "a", "dense", dense)),
		`net.chunk is given, and no layer keeps a state`:                                    {"net": map[string]any{"chunk": int64(16)}},
		`net.chunk is 0 (use 1 to 4096 rows)`:                                               {"net": map[string]any{"chunk": int64(0), "nodes": []any{node("core", "obs", "gru", map[string]any{"size": int64(8)})}}},
		`net.nodes[0].gelu`:                                                                 nodes(node("trunk", "obs", "gelu", dense)),
	} {
		if text := textOf(checkPolicy(from(keys))); !strings.Contains(text, want) {
			t.Errorf("%v:\n%s, want %q", keys, text, want)
		}
	}
	for want, c := range map[string]struct {
		keys map[string]any
		env  *hostabi.EnvSpec
	}{
		`net.nodes [1], "a", reads "b", which is no node and no input (what it can read: obs, trunk)`: {nodes(trunk, node("a", "b", "dense", dense)), pictures(6, 6, 4)},
		`net has a node, "trunk", that reads obs, and 4 inputs enter (name one of: speed, eye, `:      {nodes(trunk), dict()},
		`net has a node, "trunk.conv.0", that reads obs, and 4 inputs enter`:                          {map[string]any{"net": map[string]any{"kind": "nature_cnn"}}, dict()},
	} {
		if _, err := DecodePolicy(from(c.keys), c.env); !strings.Contains(textOf(err), want) {
			t.Errorf("%v:\n%s, want %q", c.keys, textOf(err), want)
		}
	}
	_, err := DecodePolicy(from(map[string]any{"net": map[string]any{"kind": "nature_cnn"}}), pictures(6, 6, 4))
	if want := `node "trunk.conv.0": a kernel of 8 does not fit an image of 6×6 with a pad of 0 (nature_cnn is for pictures that its`; !strings.Contains(textOf(err), want) {
		t.Errorf("Nature's network of 6×6: %v, want %q", textOf(err), want)
	}
}

// textOf returns the whole text of an error: keys, reasons and remedies.
func textOf(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, textOf(e))
		}
		return strings.Join(all, "\n")
	}
	var e *component.ConfigError
	if errors.As(err, &e) {
		return fmt.Sprintf("%s %s (%s)", e.Key, e.Reason, e.Help)
	}
	return fmt.Sprint(err)
}

// A core lies between the hidden layers and the heads: one, unless share_trunk says that policy and value have one each.
func TestPolicy_ACoreIsBehindTheLayers(t *testing.T) {
	gru := map[string]any{"kind": "gru"}
	lstm := map[string]any{"kind": "lstm", "size": int64(24)}
	for _, c := range []struct {
		net   map[string]any
		share any
		env   *hostabi.EnvSpec
		cores []string // with their inputs
		state int
		chunk int
	}{
		{map[string]any{"core": gru}, nil, pictures(6), []string{"trunk.core = gru(128) of trunk.1.activation"}, 128, 16},
		{map[string]any{"core": lstm, "chunk": int64(8)}, nil, pictures(6), []string{"trunk.core = lstm(24) of trunk.1.activation"}, 48, 8},
		{map[string]any{"core": lstm, "hidden": []any{int64(8)}}, false, pictures(6),
			[]string{"actor.core = lstm(24) of actor.0.activation", "critic.core = lstm(24) of critic.0.activation"}, 96, 16},
		{map[string]any{"core": gru}, nil, dict(), []string{"trunk.core = gru(128) of trunk.1.activation"}, 128, 16},
		{map[string]any{"core": lstm, "kind": "nature_cnn"}, nil, pictures(48, 48, 4), []string{"trunk.core = lstm(24) of trunk.0.activation"}, 48, 16},
		{map[string]any{"core": gru, "kind": "impala", "chunk": int64(4)}, false, pictures(48, 48, 4),
			[]string{"actor.core = gru(128) of actor.0.activation", "critic.core = gru(128) of critic.0.activation"}, 256, 4},
	} {
		keys := map[string]any{"net": c.net}
		if c.share != nil {
			keys["share_trunk"] = c.share
		}
		made, err := DecodePolicy(from(keys), c.env)
		if err != nil {
			t.Errorf("%v: %v", keys, textOf(err))
			continue
		}
		n := made.(*policy.Definition).Network
		var cores []string
		heads := 0 // that read a core
		for _, line := range n.Lines() {
			if strings.Contains(line, ".core = ") {
				cores = append(cores, line)
			}
			if strings.Contains(line, ".head = ") && strings.HasSuffix(line, ".core") {
				heads++
			}
		}
		if !slices.Equal(cores, c.cores) || n.State() != c.state || n.Chunk != c.chunk || heads != 2 {
			t.Errorf("%v: cores %q, read by %d heads, with a state of %d and chunks of %d", keys, cores, heads, n.State(), n.Chunk)
		}
	}
}

// Nodes name the observations that they read by path; where there is one, obs is that one, whatever its path.
func TestPolicy_NodesReadObservationsByPath(t *testing.T) {
	dense := map[string]any{"out": int64(8)}
	one := dict()
	one.Tensors = one.Tensors[:3] // speed alone
	for _, c := range []struct {
		in  string
		env *hostabi.EnvSpec
	}{{"obs", one}, {"speed", one}, {"speed", dict()}} {
		made, err := DecodePolicy(from(map[string]any{"net": map[string]any{"nodes": []any{node("trunk", c.in, "dense", dense)}}}), c.env)
		if err != nil {
			t.Fatal(err)
		}
		if n := made.(*policy.Definition).Network; n.Nodes[0].In[0] != "speed" {
			t.Errorf("a node that reads %q of %d inputs reads %q, want speed", c.in, len(n.Inputs), n.Nodes[0].In[0])
		}
	}
}

// One encoder of pictures serves policy and value, unless share_trunk says otherwise.
func TestPolicy_PicturesAreEncodedOnce(t *testing.T) {
	for want, keys := range map[string]map[string]any{"trunk.": {}, "actor.": {"share_trunk": false}} {
		made, err := DecodePolicy(from(keys), dict())
		if err != nil {
			t.Fatal(err)
		}
		if n := made.(*policy.Definition).Network; !strings.HasPrefix(n.Nodes[0].Name, want) {
			t.Errorf("%v: the first node is %s, want %s", keys, n.Nodes[0].Name, want)
		}
	}
}
