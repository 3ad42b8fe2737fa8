package wrap

import (
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// passing has the methods that wrapped batches pass on unchanged.
type passing struct {
	plugin *plugin
	inner  env.Env
	o      env.Options
}

// Render shows an inner environment; see env.Renderer.
func (p *passing) Render(index int, mode hostabi.RenderMode, view int, dst []byte) ([]byte, error) {
	if inner, ok := p.inner.(env.Renderer); ok {
		return inner.Render(index, mode, view, dst)
	}
	return dst, p.unsupported("show an environment")
}

// Ask puts a question to the inner environments; see env.Asked.
func (p *passing) Ask(question []byte) ([][]byte, error) {
	if inner, ok := p.inner.(env.Asked); ok {
		return inner.Ask(question)
	}
	return nil, p.unsupported("be asked")
}

// Probe asks the inner batch; see env.EnvProber.
func (p *passing) Probe() (trespass, words string, err error) {
	if inner, ok := p.inner.(env.EnvProber); ok {
		return inner.Probe()
	}
	return "", "", nil
}

// takeInner has the inner batch take the place of another one; see env.Successor.
func (p *passing) takeInner(from env.Env) error {
	if s, ok := p.inner.(env.Successor); ok {
		return s.TakeOver(from)
	}
	return p.unsupported("take over environments")
}

func (p *passing) unsupported(what string) error {
	return fmt.Errorf("%w: %s: the runtime of %s cannot %s", env.ErrUnsupported, p.o.Name, p.plugin.spec.Name, what)
}
