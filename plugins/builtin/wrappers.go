package builtin

import (
	"errors"

	"github.com/rlhost/rlhost/core/env"
	wasmcomponent "github.com/rlhost/rlhost/plugins/wasm/component"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// wrapped returns a plugin that was loaded with wrappers around its environments.
func (e *Engines) wrapped(p env.Plugin, err error, list []env.Wrapper) (env.Plugin, error) {
	if err != nil {
		return nil, err
	}
	outer, err := wrap.New(p, list, e.wrapper)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return outer, nil
}

// wrapper loads the module of a wrapper, which runs like a component's.
func (e *Engines) wrapper(t wrap.ModuleTable) (wrap.Module, error) {
	modules, err := e.components()
	if err != nil {
		return nil, err
	}
	w, err := modules.Wrapper(wasmcomponent.Source{Source: env.Source{Use: t.Use, SHA256: t.SHA256, Data: t.Data, Grants: t.Grants, Limits: t.Limits}}, t.Args)
	if err != nil {
		return nil, err
	}
	return wrapperModule{w}, nil
}

// wrapperModule is a module as wrap knows it.
type wrapperModule struct{ *wasmcomponent.Wrapper }

// New makes an instance for a batch.
func (m wrapperModule) New(o env.Options, agents int, columns []wrap.ModuleColumn) (wrap.ModuleInstance, error) {
	shape := wasmcomponent.Shape{Envs: o.Envs, Agents: agents}
	for _, c := range columns {
		shape.Columns = append(shape.Columns, wasmcomponent.ShapeOf(c))
	}
	at := wasmcomponent.WrapperOptions{Name: o.Name, Seed: o.Seed, Shape: shape, Log: o.Log}
	if o.Metric != nil {
		at.Metric = func(name string, value float64) { o.Metric(env.Metric{Env: -1, Name: name, Value: value}) }
	}
	return m.Wrapper.New(at)
}
