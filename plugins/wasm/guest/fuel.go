package guest

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

	// mostCounted is how much of a slice counts against a deadline where the processor time of its thread is not known: the rest
	// was not the guest, but a busy machine, or a process that was stopped for a while.
	mostCounted = 50 * time.Millisecond

	// mostWaited is how much of a slice counts by the clock: a process that was stopped for a while has not been busy.
	mostWaited = time.Second
)

// longest is how long a request may take by the clock that has a limit of processor time.
func longest(limit time.Duration) time.Duration { return 10*limit + 10*time.Second }

// moment is a time by the clock, and by the processor time of the thread that runs then.
type moment struct {
	at     time.Duration // since the runtime's epoch
	thread int           // 0 where its time is not known
	had    time.Duration
}

func (i *Instance) now() moment { return moment{at: time.Since(i.module.epoch)} }

// onThread adds the processor time of the thread. It takes three system calls.
func (m *moment) onThread() { m.thread, m.had = threadTime() }

// since returns how much of the time since an earlier moment counts: the thread's processor time, unless the call has moved to another
// thread.
func (m *moment) since(last *moment) time.Duration {
	wall := m.at - last.at
	if m.thread == 0 || m.thread != last.thread {
		return min(wall, mostCounted)
	}
	return min(wall, m.had-last.had)
}

// fuelState is the account of one instance.
type fuelState struct {
	global  api.MutableGlobal // the fuel left; the guest's code counts it down
	granted uint64            // handed out since the instance was made
	slice   int32
	limit   time.Duration // for the request in progress
	spent   time.Duration // by it since its first slice, of the processor; notStarted before
	waited  time.Duration // by the clock
	last    moment        // start of the newest slice
}

func (f *fuelState) init(m api.Module) {
	f.global = m.ExportedGlobal(meter.FuelExport).(api.MutableGlobal)
	f.slice = firstSlice
}

// notStarted is the time spent by a request that has not needed fuel yet.
const notStarted time.Duration = -1

// left returns the fuel left; it is negative when the guest must yield.
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

// work charges for work that the host has just done for the guest and ends the call as the guest's own check would.
// The caller must have done no more than a hostPiece.
func (i *Instance) work(units int) {
	i.fuel.charge(uint64(units))
	if i.fuel.left() < 0 {
		i.yield()
	}
}

// errStop ends a call from within rl.yield.
type errStop struct{ reason string }

func (e errStop) Error() string { return e.reason }

// The guest calls yield when it is out of fuel: it ends the call if its time is up or its result is no longer wanted,
// else it grants the next slice.
func (i *Instance) yield() {
	f := &i.fuel
	now := i.now()
	if f.spent == notStarted { // most requests end within the slice that begins here: they are not worth the system calls
		f.spent, f.waited = 0, 0
	} else {
		now.onThread()
		took := now.since(&f.last)
		f.spent += took
		f.waited += min(now.at-f.last.at, mostWaited)
		f.adapt(took)
	}
	f.last = now
	if f.spent > f.limit {
		panic(errStop{fmt.Sprintf("stopped after its limit of %v", f.limit)})
	}
	if f.waited > longest(f.limit) {
		panic(errStop{fmt.Sprintf("stopped after %v, in which it had %v of its limit of %v of processor time: the machine is busy",
			longest(f.limit), f.spent.Round(time.Millisecond), f.limit)})
	}
	select {
	case <-i.ctx.Done():
		panic(errStop{"stopped: " + i.ctx.Err().Error()})
	case <-i.owner.Unwanted:
		panic(errStop{"stopped: nobody waits for it any more"})
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
