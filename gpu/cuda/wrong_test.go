package cuda_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// small is a network that is quick to compute.
func small() policy.Network {
	return policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}.Network()
}

// fakeOnly returns a backend over a driver in Go, and skips on others.
func fakeOnly(t *testing.T, o fake.Options) (*cuda.Backend, *fake.Driver) {
	t.Helper()
	b, d := backendOn(t, o)
	if d == nil {
		t.Skip("needs the driver in Go")
	}
	return b, d
}

// Each missing part has its own error, from actors, learners and Find alike; once it is there, the backend works.
func TestBackend_SaysWhatIsMissing(t *testing.T) {
	n := small()
	for name, c := range map[string]struct {
		o    fake.Options
		is   error
		says string
	}{
		"no device":         {fake.Options{Devices: -1}, driver.ErrNoDevice, "CUDA_ERROR_NO_DEVICE"},
		"an old driver":     {fake.Options{Version: 11080}, driver.ErrOldDriver, "CUDA 11.8, 12.0 or newer"},
		"an old device":     {fake.Options{Capability: 75}, nil, "compute capability 7.5, 8.0 or newer"},
		"no memory left":    {fake.Options{Memory: 1 << 12}, nil, "bytes of device memory, of which"},
		"PTX of tomorrow":   {fake.Options{}, nil, "module layered: cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
		"no pinned memory":  {fake.Options{}, nil, "bytes of pinned memory: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
		"an unknown kernel": {fake.Options{}, nil, "kernel dense: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			fails := map[string]func(d *fake.Driver){
				"PTX of tomorrow":   func(d *fake.Driver) { d.FailOnce("cuModuleLoadDataEx", 222) },
				"no pinned memory":  func(d *fake.Driver) { d.FailOnce("cuMemHostAlloc", 2) },
				"an unknown kernel": func(d *fake.Driver) { d.FailOnce("cuModuleGetFunction", 500) },
			}[name]
			b, d := fakeOnly(t, c.o)
			for who, do := range map[string]func() error{
				"actor":   func() error { _, err := policy.NewActor(b, &n, 8); return err },
				"learner": func() error { _, err := ppo.NewLearner(b, &n, parameters(&n), ppo.Defaults()); return err },
			} {
				if fails != nil {
					fails(d)
				}
				err := do()
				if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v, want %q", who, err, c.says)
				}
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if fails == nil {
				return
			}
			a, err := policy.NewActor(b, &n, 8)
			if err != nil {
				t.Fatalf("the next one: %v", err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBackend_NamesTheSymbolThatADriverLacks(t *testing.T) {
	d := fake.New(fake.Options{})
	defer d.Close()
	b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) {
		return driver.Bind(func(name string) (uintptr, error) {
			if name == "cuGraphLaunch" {
				return 0, nil
			}
			return d.Lookup(name)
		})
	}})
	if _, err := b.Find(); !errors.Is(err, driver.ErrOldDriver) || !strings.Contains(err.Error(), "cuGraphLaunch") {
		t.Errorf("Find = %v", err)
	}
}

// A context that ends makes this call and all later ones fail with an error that says so, and what can be closed is: where a kernel
// takes too long, and where the device is lost.
func TestBackend_TellsOfALostContext(t *testing.T) {
	for name, options := range map[string]fake.Options{"a kernel of 800 instructions": {Seed: 1, Steps: 800}, "a lost device": {Seed: 1, Launches: 20}} {
		t.Run(name, func(t *testing.T) { losesContext(t, options) })
	}
}

func losesContext(t *testing.T, options fake.Options) {
	n := small()
	o := policytest.Options{Network: n, Steps: 4, Envs: 8, Blocks: 1, Seed: 1}
	data := policytest.Acted(t, cpu.New(), parameters(&n), o)
	d := fake.New(options)
	b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	l, err := ppo.NewLearner(b, &n, parameters(&n), ppo.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Update(data, rates); !driver.IsSticky(err) {
			t.Errorf("Update = %v, want the end of the context", err)
		}
	}
	if _, err := l.State(); !driver.IsSticky(err) {
		t.Errorf("State = %v, want the end of the context", err)
	}
	if _, err := policy.NewActor(b, &n, 8); !driver.IsSticky(err) {
		t.Errorf("NewActor = %v, want the end of the context", err)
	}
	if d.Fault() == nil || l.Close() == nil {
		t.Error("nothing tells what ended the context")
	}
}

// An actor whose device is lost while it acts says so, now and later, and its requests have the outputs that they had.
func TestActor_TellsOfALostContext(t *testing.T) {
	n := small()
	o := policytest.Options{Network: n, Steps: 1, Envs: 8, Blocks: 1, Seed: 1}
	data := policytest.NewDataset(t, o)
	launches := 0
	for _, lost := range []bool{false, true} {
		options := fake.Options{Seed: 1}
		if lost {
			options.Launches = launches - 1
		}
		d := fake.New(options)
		b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
		a, err := policy.NewActor(b, &n, 8)
		if err == nil {
			err = a.Load(policy.Weights{Params: parameters(&n)})
		}
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(data.Blocks[0].Mem)
		requests := policytest.Requests(&n, data, data.Blocks[0], 0, 8)
		err = a.Act(requests)
		if !lost {
			launches = d.Calls("cuLaunchKernel")
			if err := errors.Join(err, a.Close(), b.Close(), d.Close()); err != nil {
				t.Fatal(err)
			}
			data = policytest.NewDataset(t, o)
			continue
		}
		if !driver.IsSticky(err) || !bytes.Equal(before, data.Blocks[0].Mem) {
			t.Errorf("Act = %v, want the end of the context and nothing written", err)
		}
		if err := a.Act(requests); !driver.IsSticky(err) {
			t.Errorf("the next Act = %v, want the end of the context", err)
		}
		if err := a.Load(policy.Weights{Params: parameters(&n)}); !driver.IsSticky(err) {
			t.Errorf("Load = %v, want the end of the context", err)
		}
		if a.Close() == nil || d.Fault() == nil {
			t.Error("nothing tells what ended the context")
		}
	}
}

// Parameters that are not numbers learn nothing, and say so; the learner continues with others.
func TestLearner_RefusesParametersThatAreNotNumbers(t *testing.T) {
	b, _ := backendOn(t, fake.Options{})
	n := small()
	data := policytest.Acted(t, cpu.New(), parameters(&n), policytest.Options{Network: n, Steps: 4, Envs: 8, Blocks: 1, Seed: 1})
	bad := parameters(&n)
	bad[3] = float32(math.NaN())
	l, err := ppo.NewLearner(b, &n, bad, ppo.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Update(data, rates); !errors.Is(err, policy.ErrNotFinite) || !strings.Contains(err.Error(), "optimiser step 1") {
		t.Errorf("Update = %v, want ErrNotFinite of the first step", err)
	}
	good := parameters(&n)
	if err := l.SetState(ppo.State{Params: good, AdamM: make([]float32, len(good)), AdamV: make([]float32, len(good))}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Update(data, rates); err != nil {
		t.Errorf("with numbers: %v", err)
	}
}

// Parameters that are not numbers draw the processor's actions, which are legal, and values that are not numbers.
func TestActor_ActsOnParametersThatAreNotNumbers(t *testing.T) {
	b, _ := backendOn(t, fake.Options{})
	n := small()
	bad := parameters(&n)
	for i := range bad {
		bad[i] = float32(math.NaN())
	}
	o := policytest.Options{Network: n, Steps: 2, Envs: 8, Blocks: 1, Seed: 1}
	got, want := policytest.Acted(t, b, bad, o).Blocks[0], policytest.Acted(t, cpu.New(), bad, o).Blocks[0]
	for i, action := range got.Int32(trajectory.Action) {
		if action != want.Int32(trajectory.Action)[i] || action < 0 || action > 1 {
			t.Errorf("action %d is %d, the processor's %d", i, action, want.Int32(trajectory.Action)[i])
		}
	}
	for i, value := range got.Float32(trajectory.Value) {
		if value == value {
			t.Errorf("value %d is %v", i, value)
		}
	}
}

// Two backends share a device, as two processes do: at once, and with the bits of one alone.
func TestBackend_TwoShareADevice(t *testing.T) {
	first, d := fakeOnly(t, fake.Options{})
	second := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	defer second.Close()
	n := small()
	o := policytest.Options{Network: n, Steps: 4, Envs: 8, Blocks: 1, Seed: 1}
	want := policytest.Acted(t, cpu.New(), parameters(&n), o)
	var states [2]ppo.State
	var both sync.WaitGroup
	for i, b := range []*cuda.Backend{first, second} {
		both.Go(func() {
			if got := policytest.Acted(t, b, parameters(&n), o); !bytes.Equal(got.Blocks[0].Mem, want.Blocks[0].Mem) {
				t.Errorf("backend %d acts differently", i)
			}
			states[i], _ = learn(t, b, &n, ppo.Defaults(), want)
		})
	}
	both.Wait()
	for i, p := range states[0].Params {
		if p != states[1].Params[i] {
			t.Fatalf("parameter %d differs", i)
		}
	}
}
