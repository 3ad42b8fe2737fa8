package cuda_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// whole is a process's whole use of a backend: it acts, watches arenas, and learns from blocks in one.
type whole struct {
	net  policy.Network
	o    policytest.Options
	data *policy.Dataset
	set  *arena.Set
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	n := policy.MLP{Obs: 2, Actions: 2, Hidden: []int{4}, Activation: policy.Tanh}.Network()
	w := &whole{net: n, o: policytest.Options{Network: n, Steps: 2, Envs: 4, Blocks: 3, Seed: 1}}
	w.data, w.set = lentOf(t, &w.net, w.o)
	return w
}

// did is the outcome.
type did struct {
	acted  []byte
	params []float32
}

// do does it until the first error. Everything is closed; errors of closing are among the returned ones.
func (w *whole) do(b *cuda.Backend) (d did, err error) {
	unwatch := b.Watch(w.set, slog.New(slog.DiscardHandler), nil)
	defer unwatch()
	a, err := policy.NewActor(b, &w.net, 4)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := a.Load(policy.Weights{Params: parameters(&w.net)}); err != nil {
		return d, err
	}
	of := w.data.Blocks[2]
	block := trajectory.Trajectory{Schema: of.Schema, Mem: bytes.Clone(of.Mem)}
	if err := a.Act(policytest.Requests(&w.net, w.data, block, 0, 4)); err != nil {
		return d, err
	}
	c := ppo.Defaults()
	c.Epochs, c.TargetKL, c.VTrace = 1, 0.5, true
	l, err := ppo.NewLearner(b, &w.net, parameters(&w.net), c)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := l.Update(w.data, rates); err != nil {
		return d, err
	}
	s, err := l.State()
	return did{block.Mem, s.Params}, err
}

// ends are the functions that end something: if one fails, its object is left.
var ends = []string{"cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuModuleUnload", "cuStreamDestroy_v2", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent"}

// The driver fails in each of its functions, once, in one call after the other. There is an error that names the function, or what could
// not be had was not needed; nothing is left except objects whose end failed, which an error reports; and the next actor and
// learner of the same backend work as without a failure.
func TestBackend_ContinuesAfterAnyFailedCall(t *testing.T) {
	w := newWhole(t)
	want, calls := w.counted(t)
	for _, name := range driver.Symbols() {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= calls[name]; n = next(n, calls[name]) {
				w.fails(t, name, n, want)
			}
		})
	}
}

// next is the number of the call to fail after the n-th: all of few, and fewer and fewer of many, the last among them.
func next(n, last int) int {
	if n == last {
		return n + 1
	}
	return min(2*n, last)
}

// counted does it where nothing fails, and counts calls.
func (w *whole) counted(t *testing.T) (did, map[string]int) {
	t.Helper()
	d := fake.New(fake.Options{Seed: 1})
	b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	want, err := w.do(b)
	if err = errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for _, name := range driver.Symbols() {
		calls[name] = d.Calls(name)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return want, calls
}

// fails has the n-th call of a function fail.
func (w *whole) fails(t *testing.T, name string, n int, want did) {
	t.Helper()
	d := fake.New(fake.Options{Seed: 1})
	b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	d.FailLater(name, n, 1)
	got, err := w.do(b)
	if d.Calls(name) < n {
		err = b.Close()
	}
	if err != nil && !strings.Contains(err.Error(), name+": CUDA_ERROR_INVALID_VALUE") {
		t.Errorf("call %d: %v, want an error that names the function", n, err)
	}
	if err == nil && (!bytes.Equal(got.acted, want.acted) || !slices.Equal(got.params, want.params)) {
		t.Errorf("call %d: no error, and other results", n)
	}
	if got, err := w.do(b); err != nil || !bytes.Equal(got.acted, want.acted) || !slices.Equal(got.params, want.params) {
		t.Errorf("call %d: the next ones: %v, or other results", n, err)
	}
	closed := b.Close()
	left := d.Close()
	if left == nil {
		return
	}
	if err == nil && closed == nil || !slices.Contains(ends, name) {
		t.Errorf("call %d: %v is left after %v", n, left, errors.Join(err, closed))
	}
}

// A dataset too large for the memory is an error, and the learner continues with smaller ones.
func TestLearner_ContinuesWhenMemoryEndsInMidRun(t *testing.T) {
	n := small()
	of := func(envs int) *policy.Dataset {
		return policytest.Acted(t, cpu.New(), parameters(&n), policytest.Options{Network: n, Steps: 4, Envs: envs, Blocks: 1, Seed: 1})
	}
	few, many := of(8), of(5000) // more than there is room for at first
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 1, many.Rows()
	b, d := fakeOnly(t, fake.Options{Seed: 1})
	want, _ := learn(t, b, &n, c, few)
	for _, symbol := range []string{"cuMemAlloc_v2", "cuMemHostAlloc"} {
		update := func(before func()) (ppo.Learner, error) {
			l, err := ppo.NewLearner(b, &n, parameters(&n), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			before()
			_, err = l.Update(many, rates)
			return l, err
		}
		had := 0
		_, err := update(func() {
			had = d.Calls(symbol)
			d.FailOnce("cuLaunchKernel", 1) // nothing of it need be computed
		})
		if had = d.Calls(symbol) - had; had == 0 || err == nil {
			t.Fatalf("%s: %d calls for more rows, %v", symbol, had, err)
		}
		for call := 1; call <= had; call = next(call, had) {
			l, err := update(func() { d.FailLater(symbol, call, 2) })
			if !errors.Is(err, driver.ErrNoMemory) {
				t.Errorf("%s: call %d: Update = %v, want ErrNoMemory", symbol, call, err)
			}
			if _, err := l.Update(few, rates); err != nil {
				t.Fatalf("%s: call %d: the next: %v", symbol, call, err)
			}
			if s, err := l.State(); err != nil || !slices.Equal(s.Params, want.Params) {
				t.Errorf("%s: call %d: the next learns other parameters: %v", symbol, call, err)
			}
		}
	}
}
