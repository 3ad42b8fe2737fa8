package opponents

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func configureFrozen(into any) error {
	into.(*frozenConfig).Policy = past
	return nil
}

// stored is a state of version 12 of a network.
func stored(t *testing.T, n policy.Network) func(string) (component.State, error) {
	return func(name string) (component.State, error) {
		if name != past {
			t.Errorf("asked for policy %q", name)
		}
		return new(Frozen).Freeze("main@12", n, weightsFor(&n, 12))
	}
}

func newFrozen(t *testing.T, find func(string) (component.State, error)) (*rig, *Frozen) {
	t.Helper()
	c := NewFrozen().(*Frozen)
	r := newRig(t, c, network(4), plugintest.RigOptions{Stored: find}, configureFrozen)
	r.listen(t)
	r.MustSettle()
	return r, c
}

func TestFrozen_PublishesTheStoredVersionOnce(t *testing.T) {
	r, c := newFrozen(t, stored(t, network(4)))
	if !slices.Equal(r.published, []uint64{12}) {
		t.Errorf("published %v, want version 12", r.published)
	}
	source, n, w, err := c.Weights(written(t, c))
	if err != nil || source != "main@12" || !sameWeights(&w, &n, 12) || policy.SameParameters(&n, &r.network) != nil {
		t.Errorf("its state is version %d of %q (%v)", w.Version, source, err)
	}
	again, _ := newFrozen(t, func(string) (component.State, error) { return written(t, c), nil })
	if !slices.Equal(again.published, []uint64{12}) {
		t.Errorf("from its own state it publishes %v", again.published)
	}
}

func TestFrozen_SaysWhyItCannotStart(t *testing.T) {
	gone := errors.New("it is gone")
	damaged, err := stored(t, network(4))(past)
	if err != nil {
		t.Fatal(err)
	}
	damaged.Blobs = map[string][]byte{weightsBlob: damaged.Blobs[weightsBlob][:80]}
	for name, x := range map[string]struct {
		find func(string) (component.State, error)
		want string
	}{
		"gone":            {func(string) (component.State, error) { return component.State{}, gone }, gone.Error()},
		"another process": {nil, "in the host alone"},
		"another network": {stored(t, network(5)), `"actor.0 = dense(5) of obs", the pipeline's "actor.0 = dense(4) of obs"`},
		"damaged":         {func(string) (component.State, error) { return damaged, nil }, "have 80 bytes"},
	} {
		o := plugintest.RigOptions{Name: "frozen", Stored: x.find,
			Policies: map[string]component.Policy{past: &policy.Definition{Network: network(4), Backend: cpu.New()}}}
		err := plugintest.StartError(t, NewFrozen(), o, configureFrozen)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		var coded *table.Error
		if name == "another network" && (!errors.As(err, &coded) || coded.Code != policy.CodeNetwork) {
			t.Errorf("%s: %v has no code", name, err)
		}
	}
	w := weightsFor(&policy.Network{}, 1)
	if _, err := new(Frozen).Freeze("x", network(4), w); err == nil {
		t.Error("weights of no network were frozen")
	}
	if err := NewFrozen().Configure(func(any) error { return nil }); err == nil || !strings.Contains(err.Error(), "policy") {
		t.Errorf("without a policy: %v", err)
	}
}
