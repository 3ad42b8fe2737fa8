package wrap

import (
	"errors"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// plugin is a plugin with one wrapper around its environments.
type plugin struct {
	env.Plugin // the inner one
	wrapper    wrapper
	spec       hostabi.EnvSpec
	inner      hostabi.EnvSpec
	module     *moduleWrapper // wrapper, if it is one, else nil
	text       string         // the wrapper's table
	sum        uint32         // of text
}

// Spec describes the wrapped environments.
func (p *plugin) Spec() hostabi.EnvSpec { return p.spec }

// Configuration is that of the inner plugin and a line for the wrapper; see env.Configured.
func (p *plugin) Configuration() string {
	text := ""
	if c, ok := p.Plugin.(env.Configured); ok {
		text = c.Configuration()
	}
	return text + "\nwrap=" + p.text
}

// WrapHashes implements env.Hashing.
func (p *plugin) WrapHashes() (list []string) {
	if inner, ok := p.Plugin.(env.Hashing); ok {
		list = inner.WrapHashes()
	}
	if p.module != nil {
		list = append(list, p.module.module.Hash())
	}
	return list
}

// Rewraps implements env.Rewrapping.
func (p *plugin) Rewraps(other env.Plugin) bool {
	o, ok := other.(interface{ wraps() *plugin })
	if !ok {
		return false
	}
	_, paints := p.wrapper.(painter)
	_, painted := o.wraps().wrapper.(painter)
	if paints != painted || paints && p.text != o.wraps().text {
		return false
	}
	a, b := p.Plugin, o.wraps().Plugin
	return env.SameInstances(a, b) || env.Rewraps(a, b)
}

func (p *plugin) wraps() *plugin { return p }

// StepsParts implements env.Parted.
func (p *plugin) StepsParts() bool { return env.StepsParts(p.Plugin) && !p.spec.HasAgents() }

// StepsWhole returns the remedy where its environments cannot be stepped in parts; see env.Whole.
func (p *plugin) StepsWhole() string {
	if w, ok := p.Plugin.(env.Whole); ok {
		return w.StepsWhole()
	}
	return "the module needs " + hostabi.ExportStepRange + ", which the SDKs have"
}

// Shapes implements env.Shaping.
func (p *plugin) Shapes() bool {
	_, shapes := p.wrapper.(shaper)
	if p.module != nil {
		shapes = p.module.module.Writes() == trajectory.ShapedReward
	}
	return shapes || env.Shapes(p.Plugin)
}

// MemoryFor implements env.Sized for the inner plugin, if that does.
func (p *plugin) MemoryFor(blocks int, s *trajectory.Schema) (least, end uint64) {
	sized, ok := p.Plugin.(env.Sized)
	if !ok {
		return 0, 0
	}
	inner, err := s.As(p.inner)
	if err != nil {
		return 0, 0 // Bind says why
	}
	return sized.MemoryFor(blocks, inner)
}

// KeptBytes implements env.Keeper for the inner plugin.
func (p *plugin) KeptBytes(envs int) int64 { return env.KeptBytes(p.Plugin, envs) }

// StateBytes implements env.Saver for the inner plugin. Of what the wrappers keep it knows nothing.
func (p *plugin) StateBytes(envs int) (int64, error) { return env.StateBytes(p.Plugin, envs), nil }

// NewEnv makes a batch of wrapped environments.
func (p *plugin) NewEnv(o env.Options) (env.Env, error) {
	w := &wrapped{passing: passing{plugin: p, o: o}, part: slices.Repeat([]byte{1}, max(o.Envs, 0)), reset: make([]byte, max(o.Envs, 0))}
	if o.Metric != nil {
		o.Metric = w.report
	}
	inner, err := p.Plugin.NewEnv(o)
	if err != nil {
		return nil, err
	}
	w.inner = inner
	w.starter, _ = inner.(env.Starter)
	if err := w.fresh(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}
