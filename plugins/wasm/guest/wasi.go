package guest

import (
	"encoding/binary"
	"fmt"
	"maps"
)

// readNanos is how far the virtual clock advances when it is read, so that waiting for it ends.
const readNanos = 1000

// errExit is a guest's exit as seen from outside: a trap that leaves the module open, because closing it in the
// middle of a call would take its memory away under the caller.
type errExit uint32

func (e errExit) Error() string { return fmt.Sprintf("the guest exited with code %d", uint32(e)) }

// wasiCalls is WASI preview 1 without a world: no files but the data, no sockets, no arguments, a virtual clock, random
// numbers from the seed. The other calls are about files too, and fail.
func wasiCalls() map[string]hostCall {
	calls := map[string]func(*Instance, []uint64) uint64{
		"args_get": wasiNothing, "args_sizes_get": wasiZeroSizes,
		"environ_get": wasiNothing, "environ_sizes_get": wasiZeroSizes,
		"clock_res_get": wasiClockResolution, "clock_time_get": wasiClockTime,
		"fd_fdstat_get": wasiFDStat, "fd_read": wasiRead,
		"fd_write": wasiWrite, "poll_oneoff": wasiPoll,
		"random_get": wasiRandom, "sched_yield": wasiNothing,
		"proc_raise": wasiFails(wasiNoSys),
	}
	all := map[string]hostCall{"proc_exit": func(_ *Instance, stack []uint64) { panic(errExit(stack[0])) }}
	maps.Copy(calls, fileCalls())
	for name, call := range calls {
		all[name] = wasi(call)
	}
	return all
}

func wasiZeroSizes(i *Instance, stack []uint64) uint64 {
	count, bytes := stack[0], stack[1]
	return max(i.put32(count, 0), i.put32(bytes, 0))
}

func wasiClockResolution(i *Instance, stack []uint64) uint64 { return i.put64(stack[1], readNanos) }

func wasiClockTime(i *Instance, stack []uint64) uint64 {
	i.host.skipped += readNanos
	return i.put64(stack[2], uint64(i.host.now()))
}

func wasiRandom(i *Instance, stack []uint64) uint64 {
	buf := i.View(uint32(stack[0]), uint32(stack[1]))
	if buf == nil {
		return wasiFault
	}
	i.fill(buf)
	return wasiOK
}

// wasiFDStat describes the three standard descriptors as character devices, and what is open below the data.
func wasiFDStat(i *Instance, stack []uint64) uint64 {
	fd, e := uint32(stack[0]), i.entry(stack[0])
	if fd > 2 && e == nil {
		return wasiBadFD
	}
	b := i.View(uint32(stack[1]), 24)
	if b == nil {
		return wasiFault
	}
	clear(b)
	if e != nil {
		b[0] = kindOf(e)
		binary.LittleEndian.PutUint64(b[8:], rightsRead)
		binary.LittleEndian.PutUint64(b[16:], rightsRead)
		return wasiOK
	}
	const rightRead, rightWrite = 1 << 1, 1 << 6
	b[0] = characterDevice
	right := uint64(rightWrite)
	if fd == 0 {
		right = rightRead
	}
	binary.LittleEndian.PutUint64(b[8:], right)
	return wasiOK
}

// wasiRead reads a file, and finds standard input at its end.
func wasiRead(i *Instance, stack []uint64) uint64 {
	if uint32(stack[0]) != 0 {
		return i.readFile(stack)
	}
	return i.put32(stack[3], 0)
}

// wasiWrite accepts at most a hostPiece and returns its length, as a pipe does; libraries then write the rest.
func wasiWrite(i *Instance, stack []uint64) uint64 {
	fd := uint32(stack[0])
	if fd != 1 && fd != 2 {
		return wasiBadFD
	}
	n := uint32(stack[2])
	if n > maxVectors {
		return wasiInval
	}
	vectors := i.View(uint32(stack[1]), 8*n)
	if vectors == nil {
		return wasiFault
	}
	written, lines := 0, 0
	for ; len(vectors) > 0 && written < hostPiece; vectors = vectors[8:] {
		text := i.View(binary.LittleEndian.Uint32(vectors), binary.LittleEndian.Uint32(vectors[4:]))
		if text == nil {
			return wasiFault
		}
		text = text[:min(len(text), hostPiece-written)]
		lines += i.write(text, fd == 2)
		written += len(text)
	}
	i.work(written + lines*lineWeight)
	return i.put32(stack[3], uint32(written))
}

// wasiPoll answers every subscription at once. Waiting for a clock moves the virtual clock instead.
func wasiPoll(i *Instance, stack []uint64) uint64 {
	const subscriptionBytes, eventBytes = 48, 32
	n := uint32(stack[2])
	if n == 0 || n > maxVectors {
		return wasiInval
	}
	in, out := i.View(uint32(stack[0]), n*subscriptionBytes), i.View(uint32(stack[1]), n*eventBytes)
	if in == nil || out == nil {
		return wasiFault
	}
	for k := range int(n) {
		sub, event := in[k*subscriptionBytes:][:subscriptionBytes], out[k*eventBytes:][:eventBytes]
		kind, wait := sub[8], binary.LittleEndian.Uint64(sub[24:])
		absolute := binary.LittleEndian.Uint16(sub[40:])&1 != 0
		if kind == 0 {
			i.host.wait(wait, absolute)
		}
		copy(event, sub[:8]) // the guest's userdata
		clear(event[8:])
		event[10] = kind
	}
	return i.put32(stack[3], n)
}
