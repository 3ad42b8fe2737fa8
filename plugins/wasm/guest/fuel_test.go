package guest

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

func TestFuel_SlicesFollowTheGuestsSpeed(t *testing.T) {
	f := fuelState{slice: firstSlice}
	f.adapt(10 * sliceTime)
	if f.slice != firstSlice/2 {
		t.Errorf("slice after a long one = %d", f.slice)
	}
	for range 40 {
		f.adapt(sliceTime / 10)
	}
	if f.slice != mostSlice {
		t.Errorf("slice after many short ones = %d", f.slice)
	}
	for range 40 {
		f.adapt(time.Second)
	}
	if f.slice != leastSlice {
		t.Errorf("slice after many long ones = %d", f.slice)
	}
}

// The part of a batch that faults is named by the guest, whatever call it was in.

// Fuel depends on the guest's work, not on how it was cut into slices.
func TestFuelUsed_IsTheSameWithAnySlices(t *testing.T) {
	loop := asm.Loop + asm.Void + asm.Get(4) + asm.Const(1) + asm.Add + asm.Set(4) +
		asm.Get(4) + asm.Const(100) + asm.GeU + asm.Eqz + asm.BrIf(0) + asm.End + asm.Const(0)
	m := prepared(t, wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportReset: loop}})
	var used []uint64
	for _, slice := range []int32{1 << 8, 1 << 12, 1 << 25} {
		i, err := m.NewInstance(describe)
		must(t, err)
		i.fuel.slice = slice
		for range 1000 {
			_, err := i.Request(Reset, time.Second, 0, 0, 0, 0)
			must(t, err)
		}
		used = append(used, i.FuelUsed())
		i.Close()
	}
	if used[0] != used[1] || used[0] != used[2] || used[0] < 1000 {
		t.Errorf("fuel used with slices of three sizes: %v", used)
	}
}
