package guest

import "encoding/binary"

// Error numbers of WASI preview 1.
const (
	wasiOK     = 0
	wasiBadFD  = 8
	wasiFault  = 21
	wasiInval  = 28
	wasiNoSys  = 52
	maxVectors = 1024
)

// characterDevice is the type of the standard descriptors.
const characterDevice = 2

func wasi(call func(*Instance, []uint64) uint64) hostCall {
	return func(i *Instance, stack []uint64) {
		// A function without parameters still has room for its result.
		stack[0] = call(i, stack)
	}
}

func wasiFails(code uint64) func(*Instance, []uint64) uint64 {
	return func(*Instance, []uint64) uint64 { return code }
}

func (i *Instance) put32(ptr uint64, v uint32) uint64 {
	b := i.View(uint32(ptr), 4)
	if b == nil {
		return wasiFault
	}
	binary.LittleEndian.PutUint32(b, v)
	return wasiOK
}

func (i *Instance) put64(ptr uint64, v uint64) uint64 {
	b := i.View(uint32(ptr), 8)
	if b == nil {
		return wasiFault
	}
	binary.LittleEndian.PutUint64(b, v)
	return wasiOK
}

func wasiNothing(*Instance, []uint64) uint64 { return wasiOK }
