package driver

import (
	"bytes"
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"
)

// maxArgs is how many arguments a function of the driver has at most: cuLaunchKernel's.
const maxArgs = 11

// calls makes calls of a driver, one at a time.
type calls struct {
	table   *Table
	args    [maxArgs]uintptr
	results [2]uint64
}

// newCalls returns calls that lie on the heap, whose objects do not move: functions write to results.
//
//go:noinline
func newCalls(t *Table) *calls { return &calls{table: t} }

// result is the address of a result, for a function that writes one of at most 8 bytes.
func (c *calls) result(i int) uintptr { return uintptr(unsafe.Pointer(&c.results[i])) }

// call calls a function. It allocates nothing unless it fails.
func (c *calls) call(s symbol, args ...uintptr) error {
	n := copy(c.args[:], args)
	r, _, _ := purego.SyscallN(c.table.functions[s], c.args[:n]...)
	if code := int(int32(r)); code != 0 {
		return &Error{Call: s.String(), Code: code, Name: c.name(code)}
	}
	return nil
}

// pass is call for arguments that are converted from pointers in the call itself: what they point to lies on the heap and stays
// alive until it ends.
//
//go:uintptrescapes
func (c *calls) pass(s symbol, args ...uintptr) error { return c.call(s, args...) }

// name returns the name of a result.
func (c *calls) name(code int) string {
	var text *byte // written by the driver: its own memory
	at := new(*byte)
	if r, _, _ := purego.SyscallN(c.table.functions[cuGetErrorName], uintptr(code), uintptr(unsafe.Pointer(at))); int32(r) == 0 {
		text = *at
	}
	if text == nil {
		return "unknown error"
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(text), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(text, n))
}

// deviceName reads the name of a device.
func (c *calls) deviceName(device uint64) (string, error) {
	var name [128]byte
	if err := c.pass(cuDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(device)); err != nil {
		return "", err
	}
	text, _, _ := bytes.Cut(name[:], []byte{0})
	return string(text), nil
}

// hostAddress is where bytes lie that the Go heap does not hold.
func hostAddress(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// hostBytes are n bytes at an address that a driver has returned, outside the Go heap.
func hostBytes(address *uint64, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(address)), n)
}

// jit has the arguments and results of the driver's assembler.
type jit struct {
	options [2]uint32
	values  [2]uintptr
	log     [8192]byte
}

// Options of cuModuleLoadDataEx.
const (
	jitErrorLog      = 5
	jitErrorLogBytes = 6
)

// load assembles the text of a module, which ends with a zero.
func (c *calls) load(text []byte) (module uint64, err error) {
	j := &jit{options: [2]uint32{jitErrorLog, jitErrorLogBytes}}
	j.values = [2]uintptr{uintptr(unsafe.Pointer(&j.log[0])), uintptr(len(j.log))}
	err = c.pass(cuModuleLoadDataEx, c.result(0), uintptr(unsafe.Pointer(&text[0])), uintptr(len(j.options)),
		uintptr(unsafe.Pointer(&j.options[0])), uintptr(unsafe.Pointer(&j.values[0])))
	var e *Error
	if errors.As(err, &e) {
		log, _, _ := bytes.Cut(j.log[:], []byte{0})
		e.Log = string(bytes.TrimSpace(log))
	}
	return c.results[0], err
}

// function finds an entry of a module by its name, which ends with a zero.
func (c *calls) function(module uint64, name []byte) (uint64, error) {
	err := c.pass(cuModuleGetFunction, c.result(0), uintptr(module), uintptr(unsafe.Pointer(&name[0])))
	return c.results[0], err
}
