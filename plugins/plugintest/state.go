package plugintest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
)

func (k *kit) renews() error {
	return k.follows(playing{}, func(p *player) error {
		if err := p.play(rows + 3); err != nil {
			return err
		}
		if err := p.env.Renew(); err != nil {
			return err
		}
		if err := p.env.Step(0); err == nil {
			return errors.New("a renewed batch makes a step with no block bound")
		}
		if err := p.start(k.o.Seed); err != nil {
			return err
		}
		return p.play(k.o.Steps)
	})
}

// snapshots continues from a snapshot twice: in a new batch, and in the same one after further steps.
func (k *kit) snapshots() error {
	return k.follows(playing{}, func(p *player) error {
		if err := p.play(k.o.Steps / 2); err != nil {
			return err
		}
		snapshot, err := p.env.Snapshot()
		if errors.Is(err, env.ErrUnsupported) {
			return errSkipped
		}
		if err != nil {
			return err
		}
		then := placeOf(p)
		err = k.with(playing{}, func(other *player) error { return k.goesOn(other, then, snapshot) })
		if err != nil {
			return fmt.Errorf("in a new batch: %w", err)
		}
		if err := p.play(rows); err != nil {
			return err
		}
		return k.goesOn(p, then, snapshot)
	})
}

// place is the position of a player: its observation and its counts.
type place struct {
	t        int
	observed []byte
	phantom  []bool
	made     []int
}

func placeOf(p *player) place {
	at := place{p.t, make([]byte, p.bound().Schema.ObservedBytes()), slices.Clone(p.phantom), slices.Clone(p.made)}
	p.bound().SaveObserved(at.observed, p.t)
	return at
}

// goesOn restores a snapshot that was taken at a place, and compares the batch's steps from there with the
// baseline.
func (k *kit) goesOn(p *player, from place, snapshot []byte) error {
	if err := p.env.Restore(snapshot); err != nil {
		return err
	}
	if err := p.env.Step(0); err == nil {
		return errors.New("a restored batch makes a step with no block bound")
	}
	p.block, p.t = 0, from.t
	if err := p.env.Bind(p.blocks[0]); err != nil {
		return err
	}
	p.bound().LoadObserved(p.t, from.observed)
	copy(p.phantom, from.phantom)
	copy(p.made, from.made)
	p.trace = make(trace, len(k.base))
	for env := range k.base {
		p.trace[env] = slices.Clone(k.base[env][:from.made[env]])
	}
	if err := p.play(k.o.Steps / 2); err != nil {
		return err
	}
	return p.trace.sameAs(k.base)
}

// moves gives the last environment of a batch the state of its first one: the two then do the same.
func (k *kit) moves() error {
	return k.started(playing{}, func(p *player) error {
		stater, ok := p.env.(env.Stater)
		if !ok || k.o.Envs == 1 {
			return errSkipped
		}
		if err := p.play(3); err != nil {
			return err
		}
		saved, err := stater.SaveEnv(0, []byte("before"))
		if errors.Is(err, env.ErrUnsupported) {
			return errSkipped
		}
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(saved, []byte("before")) {
			return fmt.Errorf("SaveEnv does not append to %q, it returns %q", "before", saved)
		}
		last := k.o.Envs - 1
		if err := stater.LoadEnv(last, saved[6:]); err != nil {
			return err
		}
		again, err := stater.SaveEnv(last, nil)
		if err != nil {
			return err
		}
		if !bytes.Equal(again, saved[6:]) {
			return fmt.Errorf("saved again, the state is %x, not %x", again, saved[6:])
		}
		if stater.LoadEnv(last, saved[6:len(saved)-1]) == nil || stater.LoadEnv(k.o.Envs, saved[6:]) == nil {
			return errors.New("LoadEnv takes half a state, or an environment that does not exist")
		}
		return nil
	})
}
