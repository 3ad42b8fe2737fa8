package wasm

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// A guest that describes a discount has it in the column of that name.
func TestStep_WritesTheDiscountOfTheGuest(t *testing.T) {
	spec, err := hostabi.ParseSpec(wasmtest.Description())
	if err != nil {
		t.Fatal(err)
	}
	spec.Needs = hostabi.FeatureDiscount
	spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: hostabi.RoleDiscount, DType: hostabi.F32})
	text := spec.Describe()
	size, half := asm.Const(int32(len(text))), asm.Const(0x3f000000)
	const place = wasmtest.BindingsAt + 5*hostabi.BindingBytes
	g := wasmtest.Guest{
		Functions: map[string]asm.Code{
			hostabi.ExportDescribe: asm.Get(3) + size + asm.GeU + asm.If + asm.Void +
				asm.Get(2) + asm.Const(wasmtest.DescribedAt) + size + asm.MemoryCopy + asm.End + size,
			hostabi.ExportBind: asm.Const(wasmtest.BindingsAt) + asm.Get(1) + asm.Const(6*hostabi.BindingBytes) + asm.MemoryCopy + asm.Const(0),
			hostabi.ExportStep: asm.Const(place) + asm.Load(0) + asm.Const(place) + asm.Load(4) + asm.Get(1) + asm.Mul + asm.Add +
				half + asm.Store(0) + asm.Const(0),
		},
		After: func(m *asm.Module) { m.Data(wasmtest.DescribedAt, text) },
	}
	e, block := bound(t, g, env.Source{})
	for step := range 2 {
		if err := e.Step(step); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 2 {
		if got := block.Row(trajectory.Discount, step).Float32()[0]; got != 0.5 {
			t.Errorf("discount of step %d is %v, want what the guest has written", step, got)
		}
	}
}
