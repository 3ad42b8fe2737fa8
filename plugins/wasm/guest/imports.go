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

// Imports gives a wazero runtime the functions that guests can import.
func Imports(ctx context.Context, wz wazero.Runtime) error {
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
