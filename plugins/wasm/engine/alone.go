package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Alone is an instance of a module that imports nothing, without limits on its time: for modules of this program's own making. Its
// methods are called by one goroutine at a time.
type Alone struct {
	wz     wazero.Runtime
	module api.Module
	calls  map[string]api.Function
}

// NewAlone makes an instance. The caller closes it.
func NewAlone(module []byte) (*Alone, error) {
	ctx := context.Background()
	a := &Alone{wz: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2)), calls: map[string]api.Function{}}
	var err error
	if a.module, err = a.wz.Instantiate(ctx, module); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if a.module.Memory() == nil {
		return nil, errors.Join(errors.New("the module has no memory"), a.Close())
	}
	return a, nil
}

// Call calls an export of at most one result.
func (a *Alone) Call(name string, args ...uint64) (uint64, error) {
	f := a.calls[name]
	if f == nil {
		if f = a.module.ExportedFunction(name); f == nil {
			return 0, fmt.Errorf("the module has no function %s", name)
		}
		a.calls[name] = f
	}
	results, err := f.Call(context.Background(), args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return results[0], nil
}

// Memory is the module's memory, until the next call.
func (a *Alone) Memory() []byte {
	m := a.module.Memory()
	b, _ := m.Read(0, m.Size())
	return b
}

// Close frees the instance.
func (a *Alone) Close() error { return a.wz.Close(context.Background()) }
