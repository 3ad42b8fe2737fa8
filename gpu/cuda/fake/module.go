package fake

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda/ptx"
)

// module is a loaded one.
type module struct{ *ptx.Module }

// function is a kernel of a module.
type function struct{ *ptx.Entry }

// load reads a module; log is the assembler's message if it refuses it.
func (d *Driver) load(text string) (handle uint64, log string, result int32) {
	m, err := ptx.Parse(text)
	if err != nil {
		return 0, err.Error(), invalidPTX
	}
	if newest := newestPTX(d.options.Version); ptxVersion(m.Version) > newest {
		return 0, fmt.Sprintf("PTX .version %s; current version is %d.%d", m.Version, newest/10, newest%10), unsupportedPTX
	}
	if wants, err := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(m.Target, "sm_"), "af")); err != nil || wants > d.options.Capability {
		return 0, fmt.Sprintf("PTX .target %s; the device has %d", m.Target, d.options.Capability), invalidPTX
	}
	return d.add(&module{m}), "", success
}

// newestPTX is the version of PTX, times ten, that a version of CUDA from 12.0 on reads.
func newestPTX(cuda int) int {
	major, minor := cuda/1000, cuda%1000/10
	return (major-4)*10 + minor
}

func ptxVersion(text string) int {
	major, minor, _ := strings.Cut(text, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return a*10 + b
}

func (d *Driver) function(handle uint64, name string) (uint64, int32) {
	m, ok := object[*module](d, handle)
	if !ok {
		return 0, invalidHandle
	}
	e := m.Entry(name)
	if e == nil {
		return 0, notFound
	}
	return d.add(&function{e}), success
}

// Attributes of functions.
const (
	attributeShared    = 1
	attributeLocal     = 3
	attributeRegisters = 4
)

func (f *function) attribute(number int32) (int32, int32) {
	switch number {
	case attributeShared:
		return int32(f.Shared), success
	case attributeLocal:
		return int32(f.Local), success
	case attributeRegisters:
		return 32, success
	}
	return 0, invalidValue
}

// launch submits a kernel.
func (d *Driver) launch(f *function, grid, block [3]int, shared int, args []byte, stream uint64) int32 {
	if d.launches++; d.options.Launches > 0 && d.launches > uint64(d.options.Launches) {
		d.end(launchFailed, fmt.Errorf("fake: the device is lost after %d launches", d.options.Launches))
		return launchFailed
	}
	l := &launch{f, ptx.Launch{
		Grid: grid, Block: block, Shared: shared, Args: args,
		Seed: d.options.Seed<<32 + d.launches, Steps: d.options.Steps,
	}}
	if r := l.check(); r != success {
		return r
	}
	return d.submit(stream, l)
}

// launch is a kernel that was submitted.
type launch struct {
	f *function
	l ptx.Launch
}

// run runs the kernel; its fault ends the context.
func (l *launch) run(d *Driver) {
	err := l.f.Launch(d.memory, &l.l)
	if err == nil {
		return
	}
	result := int32(launchFailed)
	var fault *ptx.Fault
	if errors.As(err, &fault) {
		switch fault.Kind {
		case ptx.BadAddress, ptx.SharedBounds, ptx.LocalBounds, ptx.ParamBounds, ptx.ReadOnly:
			result = illegalAddress
		case ptx.Misaligned:
			result = misaligned
		case ptx.StepLimit:
			result = launchTimeout
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end(result, err)
}

// check returns the result of cuLaunchKernel for a launch that cannot be.
func (l *launch) check() int32 {
	var fault *ptx.Fault
	switch err := l.f.Check(&l.l); {
	case err == nil:
		return success
	case errors.As(err, &fault) && fault.Kind == ptx.TooManyThreads && l.f.MaxThreads > 0:
		return launchOutOfResources
	}
	return invalidValue
}
