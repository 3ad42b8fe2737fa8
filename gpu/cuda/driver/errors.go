package driver

import (
	"errors"
	"fmt"
	"slices"
)

// What can be missing, in the errors of Open, Bind and Table.Device.
var (
	ErrNoDriver  = errors.New("no CUDA driver")
	ErrOldDriver = errors.New("the CUDA driver is too old")
	ErrNoDevice  = errors.New("no CUDA device")
)

// ErrNoMemory is the kind of an *Error whose call found too little memory, of the device or of the host.
var ErrNoMemory = errors.New("out of memory")

// Is reports whether the error is of the kind of a target.
func (e *Error) Is(target error) bool { return target == ErrNoMemory && e.Code == codeNoMemory }

// Error is the result of a call of the driver that failed.
type Error struct {
	Call string // the function's name
	Code int    // CUresult
	Name string // of the code, such as CUDA_ERROR_OUT_OF_MEMORY
	Log  string // the driver's assembler's messages about a module, else empty
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Log != "" {
		text += ": " + e.Log
	}
	return text
}

// Results that are told apart.
const (
	codeNoMemory            = 2
	codeInvalidDevice       = 101
	codeNoDevice            = 100
	codeDriverMismatch      = 803
	codeNotSupportedOnThis  = 804
	codeNotReadySystem      = 802 // on boards of several GPUs: the program that joins them has not started
	codeUnknown             = 999
	codeUncorrectableMemory = 214
	codeUncorrectableLink   = 220
)

// sticky lists the results after which nothing in the context works any more.
var sticky = []int{codeUncorrectableMemory, codeUncorrectableLink,
	700, // illegal address
	702, // launch timed out
	709, // context is destroyed
	710, // assertion
	714, // hardware stack
	715, // illegal instruction
	716, // misaligned address
	717, // invalid address space
	718, // invalid program counter
	719, // launch failed
	721, // a cluster's launch failed
	226, // an error that was contained to this process
}

// Sticky reports whether the error ended the device's context: every later call fails with it, whatever is tried, and the
// process must end too. A launch's errors are reported by later calls of any stream.
func (e *Error) Sticky() bool { return slices.Contains(sticky, e.Code) }

// IsSticky reports whether an error is an *Error that is sticky, or wraps one.
func IsSticky(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Sticky()
}

// noDevice makes an error ErrNoDevice that says that there is none to be driven.
func noDevice(err error) error {
	var e *Error
	if errors.As(err, &e) && slices.Contains([]int{codeNoDevice, codeInvalidDevice, codeDriverMismatch, codeNotSupportedOnThis, codeNotReadySystem, codeUnknown}, e.Code) {
		return fmt.Errorf("%w: %w", ErrNoDevice, err)
	}
	return err
}
