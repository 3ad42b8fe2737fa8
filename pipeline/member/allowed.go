package member

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// allowing is what a run may use on this host, whatever its pipeline says: files that it has sent, what is built in, and programs that the host's
// owner allows.
type allowing struct {
	parts    *graph.Parts
	own      *sent
	programs Programs

	mu      sync.Mutex
	refused error // the first refusal, of which a problem of the pipeline has only the text
}

// sent is what a run has sent to this host, and named. Its methods may be called from any goroutine.
type sent struct {
	mu       sync.Mutex
	paths    []string          // of this host's copies
	programs map[string]string // digests; see readPrograms
	absent   map[string]map[string]absent
}

// kinds returns the kinds of a plugin whose program this host does not need.
func (s *sent) kinds(plugin string) (kinds map[string]absent, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds, ok = s.absent[plugin]
	return kinds, ok
}

// add notes files, and digests of programs.
func (s *sent) add(paths, programs map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range paths {
		s.paths = append(s.paths, path)
	}
	if s.programs == nil {
		s.programs = map[string]string{}
	}
	maps.Copy(s.programs, programs)
}

func (s *sent) has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.paths, path)
}

func (s *sent) program(name string) (digest string, named bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest, named = s.programs[name]
	return digest, named
}

// why returns the first refusal since the last call, or err where there is none.
func (a *allowing) why(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	refused := a.refused
	a.refused = nil
	return cmp.Or(refused, err)
}

// limited returns the parts of this program without what is not allowed.
func (a *allowing) limited() *graph.Parts {
	consent := &consent{a.parts, a.programs, a.own}
	p := *a.parts
	p.Load = func(ctx context.Context, name string, t graph.EnvTable, dir string) (env.Plugin, error) {
		return checked(a, a.env(consent, name, &t), func() (env.Plugin, error) { return a.parts.Load(ctx, name, t, dir) })
	}
	p.File = func(t graph.EnvTable, dir string) ([]byte, error) {
		return checked(a, a.env(consent, t.Name, &t), func() ([]byte, error) { return a.parts.File(t, dir) })
	}
	p.Spec = func(ctx context.Context, name string, t graph.EnvTable, dir string) (hostabi.EnvSpec, error) {
		return checked(a, a.env(consent, name, &t), func() (hostabi.EnvSpec, error) { return a.parts.Spec(ctx, name, t, dir) })
	}
	p.Module = func(m graph.ModuleTable, dir string) graph.Maker {
		return func() (component.Component, error) {
			return checked(a, a.files(m.Use, m.Data), func() (component.Component, error) { return a.parts.Module(m, dir)() })
		}
	}
	p.Plugin = func(t graph.PluginTable, dir string) (map[string]graph.Maker, error) {
		if kinds, ok := a.own.kinds(t.Name); ok {
			return makers(kinds), nil
		}
		own, err := consent.program(&t)
		return checked(a, err, func() (map[string]graph.Maker, error) { return a.parts.Plugin(*own, dir) })
	}
	p.PolicyBy = func(by graph.PolicyProgram, decode func(into any) error, spec *hostabi.EnvSpec) (component.Policy, error) {
		own, err := consent.program(&by.Plugin)
		return checked(a, err, func() (component.Policy, error) {
			by.Plugin = *own
			return a.parts.PolicyBy(by, decode, spec)
		})
	}
	p.Vet, p.RunText = nil, nil // the run has done it
	return &p
}

// checked returns what fn does, unless err says that it is not allowed.
func checked[T any](a *allowing, err error, fn func() (T, error)) (v T, _ error) {
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.refused = cmp.Or(a.refused, err)
		return v, err
	}
	return fn()
}

// env returns why an environment is not allowed. The table gets the SHA-256 of its program.
func (a *allowing) env(consent *consent, name string, t *graph.EnvTable) (err error) {
	if t.Plugin != nil {
		if t.Plugin, err = consent.program(t.Plugin); err == nil {
			err = consent.scripts(name, t)
		}
	} else if !slices.Contains(a.parts.Builtins, t.Use) {
		err = a.files(t.Use)
	}
	if err != nil {
		return err
	}
	for _, use := range t.WrapModules() {
		if err := a.files(use); err != nil {
			return err
		}
	}
	for _, data := range t.WrapData() {
		if err := a.files(data); err != nil {
			return err
		}
	}
	return a.files(t.Data)
}

// files returns why files are not allowed. A path that is empty names none.
func (a *allowing) files(paths ...string) error {
	for _, path := range paths {
		if path != "" && !a.own.has(path) {
			e := control.Errorf(CodeFiles, "the run names %.200q, a file of this host, and may use what it has sent alone", path)
			e.Help = "join runs of people whom you trust"
			return e
		}
	}
	return nil
}
