package guest

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// Imports gives a wazero runtime the functions that guests can import, or, with modules besides, stand-ins for functions that a
// guest imports optionally and does not get.
func Imports(ctx context.Context, wz wazero.Runtime, besides ...string) error {
	for _, name := range besides {
		if err := stub(ctx, wz, name); err != nil {
			return fmt.Errorf("host module %q: %w", name, err)
		}
	}
	if len(besides) > 0 {
		return nil
	}
	calls := map[string]map[string]hostCall{
		hostabi.ImportModule: rlCalls(), hostabi.ImportComponent: componentCalls(), module.WASI: wasiCalls(),
	}
	for _, m := range module.HostModules() {
		if err := offer(ctx, wz, m, calls[m.Name]); err != nil {
			return fmt.Errorf("host module %s: %w", m.Name, err)
		}
	}
	return nil
}

func offer(ctx context.Context, wz wazero.Runtime, m module.HostModule, calls map[string]hostCall) error {
	b := wz.NewHostModuleBuilder(m.Name)
	for _, f := range m.Functions {
		do := calls[f.Name]
		if do == nil && m.Name == module.WASI {
			do = wasi(wasiFails(wasiBadFD))
		}
		call := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			do(instanceOf(ctx), stack)
		})
		b = b.NewFunctionBuilder().WithGoModuleFunction(call, f.Params, f.Results).Export(f.Name)
	}
	if m.Name == meter.YieldModule {
		yield := api.GoFunc(func(ctx context.Context, _ []uint64) { instanceOf(ctx).yield() })
		b = b.NewFunctionBuilder().WithGoFunction(yield, nil, nil).Export(meter.YieldName)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// stub offers the functions of one type that do nothing. Of any other module it offers nothing.
func stub(ctx context.Context, wz wazero.Runtime, name string) error {
	params, results, ok := module.StubTypes(name)
	if !ok {
		return nil
	}
	b := wz.NewHostModuleBuilder(name)
	for export, status := range map[string]uint64{module.Absent: status(hostabi.StatusUnsupported), module.Silent: 0} {
		call := api.GoFunc(func(_ context.Context, stack []uint64) {
			clear(stack[:len(results)])
			if len(results) > 0 && results[0] == byte(hostabi.TypeI32) {
				stack[0] = status
			}
		})
		b = b.NewFunctionBuilder().WithGoFunction(call, params, results).Export(export)
	}
	_, err := b.Instantiate(ctx)
	return err
}
