package wasm

import (
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// A guest gets fuel by slices of about sliceTime. Between two slices nothing can stop it and the garbage
// collector waits for it, so they are short; their size follows from how fast this guest burns them.
const (
	sliceTime  = time.Millisecond
	firstSlice = 1 << 20
	leastSlice = 1 << 16
	mostSlice  = 1 << 25

	// mostCounted is how much of a slice counts against a deadline: the rest was not the guest, but a busy
	// machine, or a process that was stopped for a while.
	mostCounted = 50 * time.Millisecond
)

// fuelState is the account of one instance.
type fuelState struct {
	global  api.MutableGlobal // what is left; the guest's code counts it down
	granted uint64            // handed out since the instance was made
	slice   int32
	limit   time.Duration // for the request in progress
	spent   time.Duration // by it since its first slice, notStarted before
	last    time.Duration // start of the newest slice, since the runtime's epoch
}

func (f *fuelState) init(m api.Module) {
	f.global = m.ExportedGlobal(meter.FuelExport).(api.MutableGlobal)
	f.slice = firstSlice
}

// notStarted is the time spent by a request that has not needed fuel yet.
const notStarted time.Duration = -1

// left returns what is left; it is negative when the guest must yield.
func (f *fuelState) left() int32 { return int32(uint32(f.global.Get())) }

func (f *fuelState) set(v int32) { f.global.Set(uint64(uint32(v))) }

// used returns how much was burned.
func (f *fuelState) used() uint64 { return f.granted - uint64(int64(f.left())) }

// setUsed makes used return n, with no fuel left.
func (f *fuelState) setUsed(n uint64) {
	f.granted = n
	f.set(0)
}

// charge burns fuel for work that the host does for the guest. It takes effect at the guest's next check.
func (f *fuelState) charge(units uint64) {
	const most = 1 << 29 // a bulk operation subtracts 2^30 more, which must not wrap
	left := int64(f.left()) - int64(min(units, most))
	if left < -most {
		f.granted += uint64(-most - left)
		left = -most
	}
	f.set(int32(left))
}

// hostPiece is how much a host function does for a guest between two looks at the deadline, in units of fuel.
const hostPiece = 64 << 10

// work charges for what the host has just done for the guest and ends the call as the guest's own check would. The
// caller must have done no more than a hostPiece.
func (i *instance) work(units int) {
	i.fuel.charge(uint64(units))
	if i.fuel.left() < 0 {
		i.yield()
	}
}

// errStop ends a call from within rl.yield.
type errStop struct{ reason string }

func (e errStop) Error() string { return e.reason }

// yield is what the guest calls without fuel: it ends the call if its time is up or its result is no longer
// wanted, else it grants the next slice.
func (i *instance) yield() {
	f := &i.fuel
	now := time.Since(i.plugin.runtime.epoch)
	if f.spent == notStarted {
		f.spent = 0
	} else {
		f.spent += min(now-f.last, mostCounted)
		f.adapt(now - f.last)
	}
	f.last = now
	if f.spent > f.limit {
		panic(errStop{fmt.Sprintf("stopped after its limit of %v", f.limit)})
	}
	select {
	case <-i.ctx.Done():
		panic(errStop{"stopped: " + i.ctx.Err().Error()})
	default:
	}
	f.granted += uint64(int64(f.slice) - int64(f.left()))
	f.set(f.slice)
}

// adapt sizes the next slice by how long the last one took.
func (f *fuelState) adapt(took time.Duration) {
	switch {
	case took > 2*sliceTime:
		f.slice = max(f.slice/2, leastSlice)
	case took < sliceTime/2:
		f.slice = min(f.slice*2, mostSlice)
	}
}
