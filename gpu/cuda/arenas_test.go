package cuda_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// lent is a dataset of three blocks, of which the first two lie in an arena, with the arena's set.
func lent(t *testing.T, n *policy.Network) (*policy.Dataset, *arena.Set) {
	t.Helper()
	return lentOf(t, n, policytest.Options{Network: *n, Steps: 4, Envs: 8, Blocks: 3, Seed: 1})
}

// lentOf is lent of another dataset.
func lentOf(t *testing.T, n *policy.Network, o policytest.Options) (*policy.Dataset, *arena.Set) {
	t.Helper()
	d := policytest.Acted(t, cpu.New(), parameters(n), o)
	set := arena.NewSet()
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	a, err := set.Add(arena.Config{Name: "trajectories", Blocks: 3, BlockBytes: d.Blocks[0].Schema.Bytes})
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Blocks[:2] {
		loan, err := a.Loan()
		if err != nil {
			t.Fatal(err)
		}
		copy(loan.Bytes(), d.Blocks[i].Mem)
		d.Blocks[i] = trajectory.Trajectory{Schema: d.Blocks[i].Schema, Mem: loan.Bytes()}
		t.Cleanup(func() {
			if err := loan.Abort(); err != nil {
				t.Error(err)
			}
		})
	}
	return d, set
}

// Learning is the same from blocks that the device reads in place, blocks that cannot be registered and blocks of no arena.
func TestWatch_LearnsTheSameOfBlocksWhereTheyLie(t *testing.T) {
	n := small()
	for name, refuses := range map[string]bool{"registered": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			b, d := fakeOnly(t, fake.Options{})
			data, set := lent(t, &n)
			want, _ := learn(t, b, &n, ppo.Defaults(), data)
			if calls := d.Calls("cuMemHostRegister_v2"); calls != 0 {
				t.Fatalf("%d registrations before anybody watches", calls)
			}
			var said bytes.Buffer
			var staged stat.Counter
			cancel := b.Watch(set, slog.New(slog.NewTextHandler(&said, nil)), &staged)
			if refuses {
				d.FailOnce("cuMemHostRegister_v2", 1)
			}
			for range 2 {
				if got, _ := learn(t, b, &n, ppo.Defaults(), data); !slices.Equal(got.Params, want.Params) {
					t.Error("it learns other parameters")
				}
			}
			if calls := d.Calls("cuMemHostRegister_v2"); calls != 1 {
				t.Errorf("%d registrations of an arena, want one", calls)
			}
			told := 0
			if refuses {
				told = 1
			}
			if lines := strings.Count(said.String(), "cannot be registered"); lines != told {
				t.Errorf("the log has %d lines:\n%s", lines, said.String())
			}
			copied := 1 // block that lies in no arena
			if refuses {
				copied = len(data.Blocks)
			}
			obs, _ := data.Blocks[0].Schema.Layout(trajectory.Obs)
			if want := uint64(2 * copied * data.Steps() * obs.StrideT); staged.Value() != want {
				t.Errorf("%d bytes are copied by the processor, want %d", staged.Value(), want)
			}
			cancel()
			if calls := d.Calls("cuMemHostUnregister"); calls != 1-told {
				t.Errorf("%d arenas are taken from the device", calls)
			}
		})
	}
}

// A removed arena is taken from the device once its last watch ends, and a new arena is found.
func TestWatch_FollowsTheSet(t *testing.T) {
	n := small()
	b, d := fakeOnly(t, fake.Options{})
	data, set := lent(t, &n)
	first, second := b.Watch(set, slog.Default(), nil), b.Watch(set, slog.Default(), nil)
	learn(t, b, &n, ppo.Defaults(), data)
	first()
	learn(t, b, &n, ppo.Defaults(), data)
	if on, off := d.Calls("cuMemHostRegister_v2"), d.Calls("cuMemHostUnregister"); on != 1 || off != 0 {
		t.Errorf("%d registrations, %d ends of them, with one of two watches left", on, off)
	}
	other, err := set.Add(arena.Config{Name: "others", Blocks: 1, BlockBytes: data.Blocks[2].Schema.Bytes})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := other.Loan()
	if err != nil {
		t.Fatal(err)
	}
	copy(loan.Bytes(), data.Blocks[2].Mem)
	late := *data
	late.Blocks = []trajectory.Trajectory{{Schema: data.Blocks[2].Schema, Mem: loan.Bytes()}}
	learn(t, b, &n, ppo.Defaults(), &late)
	if err := loan.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := set.Remove(other.ID()); err != nil {
		t.Fatal(err)
	}
	if on, off := d.Calls("cuMemHostRegister_v2"), d.Calls("cuMemHostUnregister"); on != 2 || off != 1 {
		t.Errorf("%d registrations, %d ends of them, after an arena came and went", on, off)
	}
	second()
	if off := d.Calls("cuMemHostUnregister"); off != 2 {
		t.Errorf("%d ends of registrations", off)
	}
}

// The memory of an arena without a watch stays the device's until its copies under way are made: if the update
// continues, if it fails then, and if the wait for the device fails.
func TestWatch_EndsUnderACopy(t *testing.T) {
	n := small()
	for name, fails := range map[string]string{"and all goes well": "", "and a launch fails": "cuLaunchKernel", "and nobody can wait": "cuStreamSynchronize"} {
		t.Run(name, func(t *testing.T) {
			copied := func() {}
			b, d := fakeOnly(t, fake.Options{Lazy: true, Before: func(call string) {
				if call == "cuLaunchKernel" {
					copied()
				}
			}})
			data, set := lent(t, &n)
			want, _ := learn(t, b, &n, ppo.Defaults(), data)
			unwatch := b.Watch(set, slog.Default(), nil)
			l, err := ppo.NewLearner(b, &n, parameters(&n), ppo.Defaults())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			copied = sync.OnceFunc(func() {
				if fails != "" {
					d.FailOnce(fails, 1)
				}
				unwatch()
				if d.Calls("cuMemHostRegister_v2") != 1 || d.Calls("cuMemHostUnregister") != 0 {
					t.Error("the arena is not the device's while copies are under way")
				}
			})
			if _, err := l.Update(data, rates); (err != nil) != (fails != "") {
				t.Fatalf("Update = %v", err)
			}
			if fails != "" {
				if _, err := l.Update(data, rates); err != nil {
					t.Fatalf("the next Update = %v", err)
				}
			}
			if got, err := l.State(); err != nil || fails != "cuStreamSynchronize" && !slices.Equal(got.Params, want.Params) {
				t.Errorf("it learns other parameters: %v", err)
			}
			if off := d.Calls("cuMemHostUnregister"); off != 1 {
				t.Errorf("the arena is taken from the device %d times", off)
			}
		})
	}
}
