//go:build wasip1

package module

import (
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

//go:wasmimport rl_component emit
func hostEmit(signal uint32, message *hostabi.ComponentMessage) int32

//go:wasmimport rl_component lease
func hostLease(block uint32) int32

//go:wasmimport rl_component release
func hostRelease(block uint32) int32

//go:wasmimport rl_component column
func hostColumn(block uint32, name unsafe.Pointer, n uint32, access uint32, column *hostabi.ColumnBinding) int32

//go:wasmimport rl_component declare
func hostDeclare(kind uint32, name unsafe.Pointer, n uint32) int32

//go:wasmimport rl_component report
func hostReport(metric uint32, value float64)

//go:wasmimport rl_component timer
func hostTimer(after, every int64) int32

//go:wasmimport rl_component cancel
func hostCancel(timer uint32) int32

//go:wasmimport rl_component stop
func hostStop(reason uint32) int32

//go:wasmimport rl_component log
func hostLog(level uint32, text unsafe.Pointer, n uint32)

// column asks for a column by its name.
func column(block uint32, name string, access hostabi.ColumnFlags, to *hostabi.ColumnBinding) hostabi.Status {
	return hostabi.Status(hostColumn(block, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), uint32(access), to))
}

// declare makes a metric known.
func declare(kind hostabi.MetricKind, name string) int32 {
	return hostDeclare(uint32(kind), unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)))
}

// say logs a line.
func say(level uint32, line []byte) {
	hostLog(level, unsafe.Pointer(unsafe.SliceData(line)), uint32(len(line)))
}

// Memory that the host was given, by address. The collector neither moves nor frees what is here.
var donated = map[uint32][]byte{}

const (
	hostPage = 4096 // what memory is rounded to that the host may map pages over
	maxAlign = 65536
)

// donate returns the address of size bytes at a multiple of align, or 0.
func donate(size, align uint32) uint32 {
	if align == 0 || align&(align-1) != 0 || align > maxAlign || size > 1<<31 {
		return 0
	}
	if align >= hostPage {
		size = (max(size, 1) + hostPage - 1) &^ (hostPage - 1)
	}
	block := make([]byte, int(size)+int(align))
	start := uint32(uintptr(unsafe.Pointer(unsafe.SliceData(block))))
	at := (start + align - 1) &^ (align - 1)
	donated[at] = block
	return at
}

// bytesAt views n bytes of the memory that the host was given.
func bytesAt(at, n uint32) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), at)), n)
}

// messageAt views a message.
func messageAt(at uint32) *hostabi.ComponentMessage {
	return (*hostabi.ComponentMessage)(unsafe.Add(unsafe.Pointer(nil), at))
}

// identityAt views what rl_start is given.
func identityAt(at uint32) *hostabi.Identity {
	return (*hostabi.Identity)(unsafe.Add(unsafe.Pointer(nil), at))
}
