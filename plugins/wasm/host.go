package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// hostFunction is a function that the host offers to guests.
type hostFunction struct {
	name            string
	params, results []api.ValueType
	grant           string // capability that a guest needs to import it, "" if none
	call            func(i *instance, stack []uint64)
}

// hostModule holds what guests import by one module name.
type hostModule struct {
	name      string
	functions []hostFunction
}

// hostModules returns everything that a guest can import. WASI needs no grant because it exposes nothing.
func hostModules() []hostModule {
	return []hostModule{
		{hostabi.ImportModule, rlFunctions()},
		{wasiModule, wasiFunctions()},
	}
}

func (m hostModule) instantiate(ctx context.Context, wz wazero.Runtime) error {
	b := wz.NewHostModuleBuilder(m.name)
	for _, f := range m.functions {
		call := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			f.call(instanceOf(ctx), stack)
		})
		b = b.NewFunctionBuilder().WithGoModuleFunction(call, f.params, f.results).Export(f.name)
	}
	if m.name == meter.YieldModule {
		yield := api.GoFunc(func(ctx context.Context, _ []uint64) { instanceOf(ctx).yield() })
		b = b.NewFunctionBuilder().WithGoFunction(yield, nil, nil).Export(meter.YieldName)
	}
	_, err := b.Instantiate(ctx)
	return err
}
