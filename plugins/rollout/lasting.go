package rollout

import (
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
)

var _ component.Lasting = (*Rollout)(nil)

// saveLasting appends the state that an environment keeps beyond its episodes; see env.Lasting.
func (b *batch) saveLasting(index int, dst []byte) []byte {
	if e, ok := b.env.(env.Lasting); ok {
		return e.SaveLasting(index, dst)
	}
	return dst
}

// loadLasting gives an environment that begins an episode the lasting state of another.
func (b *batch) loadLasting(index int, kept []byte) {
	if e, ok := b.env.(env.Lasting); ok {
		e.LoadLasting(index, kept)
		b.tape.Changed(len(kept) > 0)
	}
}

// renew makes the environments as good as new, except for their lasting state.
func (b *batch) renew() error {
	kept := make([][]byte, b.c.envs())
	for index := range kept {
		kept[index] = b.saveLasting(index, nil)
	}
	if err := b.env.Renew(); err != nil {
		return err
	}
	b.tape.Renewed()
	for index := range kept {
		b.loadLasting(index, kept[index])
	}
	return nil
}

// inherit takes over the lasting state of environments of other batches.
func (b *batch) inherit(owner func(env int) *batch) {
	for index := range b.c.envs() {
		if from := owner(index); from != b {
			b.saved = from.saveLasting(index, b.saved[:0])
			b.loadLasting(index, b.saved)
		}
	}
}

// Lasting returns the lasting state of all environments, in their order; see component.Lasting and env.AppendLasting.
func (c *Rollout) Lasting() (part component.State, ok bool) {
	var all []byte
	for _, s := range c.splits {
		for index := range c.envs() {
			all = env.AppendLasting(all, s.ownerOf(index).env, index)
		}
	}
	if len(all) == 4*c.config.Envs {
		return component.State{}, false // no environment has any
	}
	return component.State{Blobs: map[string][]byte{component.LastingBlob: all}}, true
}

// resumeLasting gives each environment the lasting state of an environment of a component, which may have had more or fewer.
func (c *Rollout) resumeLasting(all []byte) error {
	kept, err := env.SplitLasting(all)
	if err != nil || len(kept) == 0 {
		return err
	}
	for _, s := range c.splits {
		for index := range c.envs() {
			s.batch.loadLasting(index, kept[(s.index*c.envs()+index)%len(kept)])
		}
	}
	return nil
}
