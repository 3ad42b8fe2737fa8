package cuda_test

import (
	"log/slog"
	"os"
	"runtime/debug"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/internal/testkit"
)

// enduring is a backend that acts and learns while weights and arenas come and go.
type enduring struct {
	*testing.T
	net    policy.Network
	params []float32
	actor  policy.Actor
	acted  *policy.Dataset
	learns ppo.Learner
	set    *arena.Set
}

// weights loads n versions of the policy and acts with each.
func (e *enduring) weights(n int) {
	e.Helper()
	for i := range n {
		e.params[i%len(e.params)] += 1e-4
		if err := e.actor.Load(policy.Weights{Params: e.params, Version: uint64(i)}); err != nil {
			e.Fatal(err)
		}
		policytest.Act(e, &e.net, e.actor, e.acted, 8)
	}
}

// arenas learns from blocks of n arenas one after the other, each of which is removed.
func (e *enduring) arenas(n int) {
	e.Helper()
	of := e.acted.Blocks[0]
	for range n {
		a, err := e.set.Add(arena.Config{Name: "trajectories", Blocks: 2, BlockBytes: of.Schema.Bytes})
		if err != nil {
			e.Fatal(err)
		}
		loan, err := a.Loan()
		if err != nil {
			e.Fatal(err)
		}
		copy(loan.Bytes(), of.Mem)
		d := *e.acted
		d.Blocks = []trajectory.Trajectory{{Schema: of.Schema, Mem: loan.Bytes()}}
		if _, err := e.learns.Update(&d, rates); err != nil {
			e.Fatal(err)
		}
		if err := loan.Abort(); err != nil {
			e.Fatal(err)
		}
		if err := e.set.Remove(a.ID()); err != nil {
			e.Fatal(err)
		}
	}
}

// What weights and arenas take of the device and of the process they give back. With RLHOST_LONG it is for machines with a GPU: 10,000 weights
// and 1,000 arenas.
func TestEndure_GivesBackWhatComesAndGoes(t *testing.T) {
	weights, arenas := 20, 10
	if os.Getenv("RLHOST_LONG") != "" {
		weights, arenas = 10_000, 1_000
	}
	b, inGo := backendOn(t, fake.Options{})
	d := deviceOf(t, inGo)
	n := small()
	o := policytest.Options{Network: n, Steps: 2, Envs: 8, Blocks: 1, Seed: 1}
	e := &enduring{T: t, net: n, params: parameters(&n), acted: policytest.Acted(t, cpu.New(), parameters(&n), o), set: arena.NewSet()}
	unwatch := b.Watch(e.set, slog.Default(), nil)
	e.makes(b)
	e.weights(2)
	e.arenas(2)
	before := holds(t, d)
	e.weights(weights)
	e.arenas(arenas)
	// Other processes may use the device meanwhile, and Go's heap has some play; an arena's registrations or an actor's modules are far more.
	// The memory of arenas is unmapped some time after a collection has found no slice of it.
	var after held
	testkit.Until(t, "what weights and arenas took is given back", func() bool {
		after = holds(t, d)
		return after.device <= before.device+4<<20 && after.Mappings <= before.Mappings+40 && after.Resident <= before.Resident+64<<20 &&
			after.Descriptors <= before.Descriptors+4
	}, &before, &after)
	t.Logf("before %+v, after %+v", before, after)
	if inGo != nil {
		if after.device != before.device {
			t.Errorf("%d bytes of the device before, %d after", before.device, after.device)
		}
		if on, off := inGo.Calls("cuMemHostRegister_v2"), inGo.Calls("cuMemHostUnregister"); on != arenas+2 || off != on {
			t.Errorf("%d arenas are registered, %d are taken back, want %d", on, off, arenas+2)
		}
	}
	unwatch()
	e.ends()
}

// makes makes actor and learner.
func (e *enduring) makes(b *cuda.Backend) {
	e.Helper()
	var err error
	if e.actor, err = policy.NewActor(b, &e.net, 8); err != nil {
		e.Fatal(err)
	}
	c := ppo.Defaults()
	c.Epochs = 1
	if e.learns, err = ppo.NewLearner(b, &e.net, parameters(&e.net), c); err != nil {
		e.Fatal(err)
	}
}

// ends closes them.
func (e *enduring) ends() {
	e.Helper()
	for _, end := range []func() error{e.actor.Close, e.learns.Close, e.set.Close} {
		if err := end(); err != nil {
			e.Error(err)
		}
	}
}

// deviceOf is the device of backendOn, to ask what it holds.
func deviceOf(t *testing.T, inGo *fake.Driver) *driver.Device {
	t.Helper()
	open := named().Driver
	if inGo != nil {
		open = func() (*driver.Table, error) { return driver.Bind(inGo.Lookup) }
	}
	table, err := open()
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// held counts the resources of a process and its device.
type held struct {
	control.Resources
	device int // bytes
}

func holds(t *testing.T, d *driver.Device) held {
	t.Helper()
	debug.FreeOSMemory()
	free, err := d.Free()
	if err != nil {
		t.Fatal(err)
	}
	return held{control.ReadResources(), d.Memory - free}
}
