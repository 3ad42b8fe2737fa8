package plugintest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// errSkipped: the environment lacks the feature of a check.
var errSkipped = errors.New("not offered")

// kit is the shared state of the checks.
type kit struct {
	plugin env.Plugin
	spec   hostabi.EnvSpec
	o      Options
	base   trace // of the first batch, made on first use
}

func newKit(p env.Plugin, o Options) *kit {
	spec := p.Spec()
	return &kit{plugin: p, spec: spec, o: o.withDefaults(spec)}
}

// with runs fn with a player that is closed afterwards.
func (k *kit) with(o playing, fn func(*player) error) error {
	p, err := k.player(o)
	if err != nil {
		return err
	}
	return errors.Join(fn(p), p.close())
}

// started is with for a player that has reset its environments.
func (k *kit) started(o playing, fn func(*player) error) error {
	return k.with(o, func(p *player) error {
		if err := p.start(k.o.Seed); err != nil {
			return err
		}
		return fn(p)
	})
}

// baseline returns the trace that others are compared with.
func (k *kit) baseline() (trace, error) {
	if k.base != nil {
		return k.base, nil
	}
	err := k.started(playing{}, func(p *player) error {
		if err := p.play(k.o.Steps); err != nil {
			return err
		}
		k.base = p.trace
		return nil
	})
	return k.base, err
}

// follows is started for a player whose trace must be that of the baseline in the end, as far as it goes.
func (k *kit) follows(o playing, fn func(*player) error) error {
	want, err := k.baseline()
	if err != nil {
		return err
	}
	return k.started(o, func(p *player) error {
		if err := fn(p); err != nil {
			return err
		}
		return p.trace.sameAs(want)
	})
}

// same plays another way than the baseline, with the same results.
func (k *kit) same(o playing) error {
	return k.follows(o, func(p *player) error { return p.play(k.o.Steps) })
}

func (k *kit) describes() error {
	if sum, err := hex.DecodeString(k.plugin.Hash()); err != nil || len(sum) != 32 {
		return fmt.Errorf("hash %q is not a SHA-256 in hexadecimal", k.plugin.Hash())
	}
	return k.with(playing{}, func(p *player) error {
		if !reflect.DeepEqual(*p.env.Spec(), k.spec) {
			return fmt.Errorf("the environment describes itself as %+v, the plugin as %+v", *p.env.Spec(), k.spec)
		}
		return nil
	})
}

func (k *kit) repeats() error { return k.same(playing{blocks: 3}) }

// forgets plays with other seeds first.
func (k *kit) forgets() error {
	return k.follows(playing{}, func(p *player) error {
		if err := p.start(k.o.Seed + 1); err != nil {
			return err
		}
		if err := p.play(k.o.Steps/3 + 1); err != nil {
			return err
		}
		if err := p.start(k.o.Seed); err != nil {
			return err
		}
		return p.play(k.o.Steps)
	})
}

// independent steps two batches in turn.
func (k *kit) independent() error {
	return k.follows(playing{}, func(p *player) error {
		return k.with(playing{}, func(other *player) error {
			if err := other.start(k.o.Seed + 7); err != nil {
				return err
			}
			for range k.o.Steps {
				if err := errors.Join(p.step(), other.step()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// separate steps the first environment without the others.
func (k *kit) separate() error {
	if k.o.Envs == 1 {
		return errSkipped
	}
	return k.same(playing{envs: 1})
}

// switches binds another block before each step, and checks that the unbound one does not change.
func (k *kit) switches() error {
	return k.follows(playing{}, func(p *player) error {
		for step := range 4 * rows {
			if p.t < rows {
				if err := p.carry(1-p.block, p.t); err != nil {
					return err
				}
			}
			other := p.blocks[1-p.block].Mem
			if p.t == rows {
				other = nil // the step binds it
			}
			before := bytes.Clone(other)
			err := p.step()
			if !bytes.Equal(before, other) {
				return fmt.Errorf("step %d wrote to a block that is not bound", step)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// relocates binds blocks of the same index that lie in other files, each of which is closed when another is bound, so
// that the next one has its descriptor.
func (k *kit) relocates() error {
	return k.follows(playing{}, func(p *player) error {
		stepIn := func(block int) error { return errors.Join(p.carry(block, p.t%rows), p.step()) }
		for turn := range 2 * rows {
			segment, other, err := foreign(p.blocks[0])
			if err != nil {
				return err
			}
			p.blocks = append(p.blocks[:2], other)
			if err := errors.Join(stepIn(2), stepIn(1), segment.Close()); err != nil {
				return fmt.Errorf("turn %d: %w", turn, err)
			}
			if turn%3 == 0 {
				if err := stepIn(0); err != nil {
					return err
				}
			}
		}
		p.blocks = p.blocks[:2]
		return nil
	})
}

// foreign returns a block with the index of another one, in a separate segment.
func foreign(like env.Block) (*shm.Segment, env.Block, error) {
	segment, err := shm.Create("plugintest.foreign", like.Schema.Bytes)
	if err != nil {
		return nil, env.Block{}, err
	}
	tr := trajectory.Trajectory{Schema: like.Schema, Mem: segment.Bytes()[:like.Schema.Bytes]}
	trajectory.Params{Trajectory: tr}.Clear()
	return segment, env.Block{Trajectory: tr, Index: like.Index, FD: segment.FD()}, nil
}

// maskedReset resets every second environment in the middle of its episode.
func (k *kit) maskedReset() error {
	if k.o.Envs == 1 {
		return errSkipped
	}
	return k.follows(playing{}, func(p *player) error {
		if err := p.play(rows / 2); err != nil {
			return err
		}
		mask := make([]uint8, k.o.Envs)
		for env := range mask {
			mask[env] = uint8(env & 1)
		}
		for i := range p.phantom {
			p.phantom[i] = p.phantom[i] && mask[i/k.spec.Agents()] == 0
		}
		if err := p.reset(mask, nil); err != nil {
			return err
		}
		if err := p.play(k.o.Steps - rows/2); err != nil {
			return err
		}
		for i := range p.trace {
			if mask[i/k.spec.Agents()] != 0 {
				p.trace[i] = k.base[i] // its episodes are others since the reset
			}
		}
		return nil
	})
}

func (k *kit) layouts() error {
	if k.spec.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		return errSkipped
	}
	return k.same(playing{soa: true})
}

func (k *kit) modes() error {
	looked := 0
	for _, mode := range []hostabi.Autoreset{hostabi.NextStep, hostabi.SameStep, hostabi.Disabled} {
		if k.spec.Autoreset&mode == 0 || mode == k.spec.PickAutoreset() {
			continue
		}
		if err := k.same(playing{mode: mode}); err != nil {
			return fmt.Errorf("%v against %v: %w", k.spec.PickAutoreset(), mode, err)
		}
		looked++
	}
	if looked == 0 {
		return errSkipped
	}
	return nil
}

func (k *kit) refuses() error {
	for _, o := range []env.Options{
		{Envs: 0, Autoreset: k.spec.PickAutoreset()}, {Envs: -1, Autoreset: k.spec.PickAutoreset()},
		{Envs: 1}, {Envs: 1, Autoreset: 1 << 20}, {Envs: 1, Autoreset: hostabi.SameStep | hostabi.NextStep | hostabi.Disabled},
	} {
		if e, err := k.plugin.NewEnv(o); err == nil {
			return errors.Join(fmt.Errorf("NewEnv takes %+v", o), e.Close())
		}
	}
	return k.with(playing{}, func(p *player) error {
		if p.env.Step(0) == nil || p.env.Reset(0, nil, nil) == nil {
			return errors.New("it steps or resets with no block bound")
		}
		if err := p.start(k.o.Seed); err != nil {
			return err
		}
		n := k.o.Envs
		for what, err := range map[string]error{
			"step -1": p.env.Step(-1), "step behind the last": p.env.Step(rows),
			"reset -1": p.env.Reset(-1, nil, nil), "reset behind the last": p.env.Reset(rows+1, nil, nil),
			"too few masks": p.env.Reset(0, make([]uint8, n-1), nil), "too many seeds": p.env.Reset(0, nil, make([]uint64, n+1)),
			"a bad snapshot": p.env.Restore([]byte("nothing that it has written")),
		} {
			if err == nil {
				return fmt.Errorf("it takes %s", what)
			}
		}
		return p.play(rows)
	})
}

func (k *kit) allocates() error {
	return k.started(playing{}, func(p *player) error {
		p.quiet = true
		if err := p.play(200); err != nil {
			return err
		}
		var failed error
		n := testing.AllocsPerRun(200, func() {
			if err := p.step(); err != nil {
				failed = err
			}
		})
		if n != 0 {
			return errors.Join(failed, fmt.Errorf("%v allocations a step, want 0", n))
		}
		return failed
	})
}
