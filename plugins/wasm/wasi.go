package wasm

import (
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// wasiModule is the import module of WASI preview 1, which compilers link in unasked.
const wasiModule = "wasi_snapshot_preview1"

// Error numbers of WASI preview 1.
const (
	wasiOK     = 0
	wasiBadFD  = 8
	wasiFault  = 21
	wasiInval  = 28
	wasiNoSys  = 52
	maxVectors = 1024
)

// readNanos is how far the virtual clock advances when it is read, so that waiting for it ends.
const readNanos = 1000

// errExit is what a guest's exit looks like from outside: a trap that leaves the module open, because closing it
// in the middle of a call would take its memory away under the caller.
type errExit uint32

func (e errExit) Error() string { return fmt.Sprintf("the guest exited with code %d", uint32(e)) }

// wasiFunctions is WASI preview 1 without a world: no files, no sockets, no arguments, a virtual clock, random
// numbers from the seed. Parameters are written as letters: i for i32, I for i64.
func wasiFunctions() []hostFunction {
	fails := map[string]string{
		"fd_advise": "iIIi", "fd_allocate": "iII", "fd_close": "i", "fd_datasync": "i",
		"fd_fdstat_set_flags": "ii", "fd_fdstat_set_rights": "iII", "fd_filestat_get": "ii",
		"fd_filestat_set_size": "iI", "fd_filestat_set_times": "iIIi", "fd_pread": "iiiIi",
		"fd_prestat_get": "ii", "fd_prestat_dir_name": "iii", "fd_pwrite": "iiiIi", "fd_readdir": "iiiIi",
		"fd_renumber": "ii", "fd_seek": "iIii", "fd_sync": "i", "fd_tell": "ii",
		"path_create_directory": "iii", "path_filestat_get": "iiiii", "path_filestat_set_times": "iiiiIIi",
		"path_link": "iiiiiii", "path_open": "iiiiiIIii", "path_readlink": "iiiiii",
		"path_remove_directory": "iii", "path_rename": "iiiiii", "path_symlink": "iiiii",
		"path_unlink_file": "iii", "sock_accept": "iii", "sock_recv": "iiiiii", "sock_send": "iiiii",
		"sock_shutdown": "ii",
	}
	all := []hostFunction{
		wasi("args_get", "ii", wasiNothing), wasi("args_sizes_get", "ii", wasiZeroSizes),
		wasi("environ_get", "ii", wasiNothing), wasi("environ_sizes_get", "ii", wasiZeroSizes),
		wasi("clock_res_get", "ii", wasiClockResolution), wasi("clock_time_get", "iIi", wasiClockTime),
		wasi("fd_fdstat_get", "ii", wasiFDStat), wasi("fd_read", "iiii", wasiRead),
		wasi("fd_write", "iiii", wasiWrite), wasi("poll_oneoff", "iiii", wasiPoll),
		wasi("random_get", "ii", wasiRandom), wasi("sched_yield", "", wasiNothing),
		wasi("proc_raise", "i", wasiFails(wasiNoSys)),
	}
	for name, params := range fails {
		all = append(all, wasi(name, params, wasiFails(wasiBadFD)))
	}
	exit := hostFunction{name: "proc_exit", params: letters("i"), call: func(_ *instance, stack []uint64) {
		panic(errExit(stack[0]))
	}}
	return append(all, exit)
}

func wasi(name, params string, call func(*instance, []uint64) uint64) hostFunction {
	return hostFunction{name: name, params: letters(params), results: letters("i"),
		call: func(i *instance, stack []uint64) {
			// A function without parameters still has room for its result.
			stack[0] = call(i, stack)
		}}
}

func letters(s string) []api.ValueType {
	types := make([]api.ValueType, len(s))
	for i, c := range s {
		types[i] = api.ValueTypeI32
		if c == 'I' {
			types[i] = api.ValueTypeI64
		}
	}
	return types
}

func wasiNothing(*instance, []uint64) uint64 { return wasiOK }

func wasiFails(code uint64) func(*instance, []uint64) uint64 {
	return func(*instance, []uint64) uint64 { return code }
}

func (i *instance) put32(ptr uint64, v uint32) uint64 {
	b := i.view(uint32(ptr), 4)
	if b == nil {
		return wasiFault
	}
	binary.LittleEndian.PutUint32(b, v)
	return wasiOK
}

func (i *instance) put64(ptr uint64, v uint64) uint64 {
	b := i.view(uint32(ptr), 8)
	if b == nil {
		return wasiFault
	}
	binary.LittleEndian.PutUint64(b, v)
	return wasiOK
}

func wasiZeroSizes(i *instance, stack []uint64) uint64 {
	count, bytes := stack[0], stack[1]
	return max(i.put32(count, 0), i.put32(bytes, 0))
}

func wasiClockResolution(i *instance, stack []uint64) uint64 { return i.put64(stack[1], readNanos) }

func wasiClockTime(i *instance, stack []uint64) uint64 {
	i.host.skipped += readNanos
	return i.put64(stack[2], uint64(i.host.now()))
}

func wasiRandom(i *instance, stack []uint64) uint64 {
	buf := i.view(uint32(stack[0]), uint32(stack[1]))
	if buf == nil {
		return wasiFault
	}
	i.fill(buf)
	return wasiOK
}

// wasiFDStat describes the three standard descriptors as character devices.
func wasiFDStat(i *instance, stack []uint64) uint64 {
	fd := uint32(stack[0])
	if fd > 2 {
		return wasiBadFD
	}
	b := i.view(uint32(stack[1]), 24)
	if b == nil {
		return wasiFault
	}
	clear(b)
	const characterDevice, rightRead, rightWrite = 2, 1 << 1, 1 << 6
	b[0] = characterDevice
	right := uint64(rightWrite)
	if fd == 0 {
		right = rightRead
	}
	binary.LittleEndian.PutUint64(b[8:], right)
	return wasiOK
}

// wasiRead finds standard input at its end.
func wasiRead(i *instance, stack []uint64) uint64 {
	if uint32(stack[0]) != 0 {
		return wasiBadFD
	}
	return i.put32(stack[3], 0)
}

// wasiWrite accepts at most a hostPiece and returns its length, as a pipe does; libraries then write the rest.
func wasiWrite(i *instance, stack []uint64) uint64 {
	fd := uint32(stack[0])
	if fd != 1 && fd != 2 {
		return wasiBadFD
	}
	n := uint32(stack[2])
	if n > maxVectors {
		return wasiInval
	}
	vectors := i.view(uint32(stack[1]), 8*n)
	if vectors == nil {
		return wasiFault
	}
	written, lines := 0, 0
	for ; len(vectors) > 0 && written < hostPiece; vectors = vectors[8:] {
		text := i.view(binary.LittleEndian.Uint32(vectors), binary.LittleEndian.Uint32(vectors[4:]))
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
func wasiPoll(i *instance, stack []uint64) uint64 {
	const subscriptionBytes, eventBytes = 48, 32
	n := uint32(stack[2])
	if n == 0 || n > maxVectors {
		return wasiInval
	}
	in, out := i.view(uint32(stack[0]), n*subscriptionBytes), i.view(uint32(stack[1]), n*eventBytes)
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

// wait moves the virtual clock on by, or to, a number of nanoseconds; by at most a day, so that it cannot wrap.
func (h *hostState) wait(nanos uint64, absolute bool) {
	const day = 24 * 3600 * 1e9
	if absolute {
		now := uint64(h.now())
		if nanos <= now {
			return
		}
		nanos -= now
	}
	h.skipped += int64(min(nanos, day))
}
