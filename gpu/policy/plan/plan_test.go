package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// network is nodes behind obs, with heads that read those named, one action each.
func network(policies []string, value string, nodes ...policy.Node) *policy.Network {
	n := &policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{3}}}, Nodes: nodes,
		Values: []policy.ValueHead{{Name: "value", From: value}}}
	for i, from := range policies {
		n.Policy = append(n.Policy, policy.Dist{Action: fmt.Sprint(i), From: from, Categorical: &head.Categorical{N: 2}})
	}
	return n
}

func dense(name, in string, out int) policy.Node {
	return policy.Node{Name: name, In: []string{in}, Dense: &layer.Dense{Out: out, Gain: 1}}
}

func activation(name, in string, f layer.Func) policy.Node {
	return policy.Node{Name: name, In: []string{in}, Activation: &layer.Activation{Func: f}}
}

// line is a step in one line: what it reads, begins and ends, and its activation with where the derivative is taken.
func line(s *Step) string {
	text := s.Name
	for _, e := range s.In {
		from := "obs"
		if e.From != nil {
			from = e.From.Name
		}
		if e.First {
			from = "(" + from
		}
		if e.Last {
			from += ")"
		}
		text += " " + from
	}
	if s.Activation != nil {
		text += " " + string(s.Activation.Activation.Func)
	}
	if s.Slope != nil {
		text += " at " + s.Slope.Name
	}
	return text
}

func TestNew_FusesWhatNeedsNoInputAgain(t *testing.T) {
	n := network([]string{"head"}, "value",
		activation("first", "obs", layer.SiLU), dense("a", "first", 4), activation("a.tanh", "a", layer.Tanh), activation("twice", "a.tanh", layer.ReLU),
		dense("b", "twice", 4), activation("b.gelu", "b", layer.GELU),
		dense("c", "b.gelu", 4), activation("c.elu", "c", layer.ELU), policy.Node{Name: "sum", In: []string{"c.elu", "c", "b.gelu"}, Add: &layer.Add{}},
		dense("head", "sum", 2), dense("value", "sum", 1))
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := New(n)
	if err != nil {
		t.Fatal(err)
	}
	var lines, back []string
	for i, s := range p.Steps {
		lines = append(lines, line(s))
		if s.At != i {
			t.Errorf("%s is at %d, says %d", s.Name, i, s.At)
		}
	}
	// Gradients go back in the opposite order, heads first: of several readers the last in this list begins.
	want := []string{"first (obs) silu", "a (first) tanh at a", "twice (a) relu at twice", "b (twice)", "b.gelu (b) gelu at b",
		"c b.gelu)", "c.elu c) elu at c.elu", "sum (c.elu) (c (b.gelu", "head (sum", "value sum)"}
	if !slices.Equal(lines, want) {
		t.Errorf("steps:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range p.Backward {
		back = append(back, s.Name)
	}
	if got := strings.Join(back, " "); got != "head value sum c.elu c b.gelu b twice a first" {
		t.Errorf("backward: %s", got)
	}
}

func TestNew_NotesWhatDependsOnEachStep(t *testing.T) {
	p, err := New(network([]string{"head"}, "value", dense("trunk", "obs", 4), dense("actor", "trunk", 4), dense("head", "actor", 2), dense("value", "trunk", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		acts, values := s.Name != "value", s.Name == "trunk" || s.Name == "value"
		if s.Acts != acts || s.Values != values || s.Head != (s == p.Policy[0] || s == p.Value) {
			t.Errorf("%s: acts %t, values %t, head %t", s.Name, s.Acts, s.Values, s.Head)
		}
	}
}

func TestNew_RefusesHeadsThatAreNoDenseOfTheirOwn(t *testing.T) {
	for name, n := range map[string]*policy.Network{
		"squashed": network([]string{"squashed"}, "value", dense("head", "obs", 2), activation("squashed", "head", layer.Tanh), dense("value", "obs", 1)),
		"head":     network([]string{"head", "head"}, "value", dense("head", "obs", 2), dense("value", "obs", 1)),
		"reader":   network([]string{"head"}, "value", dense("head", "obs", 2), activation("reader", "head", layer.GELU), dense("value", "reader", 1)),
	} {
		if _, err := New(n); !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("New = %v, want ErrUnsupported that names %s", err, name)
		}
	}
}

func TestPlaces_FollowTheCanonicalOrder(t *testing.T) {
	a, b := Flat(2), Tensor{Size: 4, Count: 2, Index: func(i int) int { return 2 * i }}
	a.At, b.At = 10, 3
	count, place := Places([]*Tensor{&a, &b})
	if got := place(); count != 4 || !slices.Equal(got, []int32{10, 11, 3, 5}) {
		t.Errorf("%d places %v", count, got)
	}
}
