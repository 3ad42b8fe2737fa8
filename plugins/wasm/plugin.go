package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// Plugin is a module that was loaded and checked. It implements env.Plugin; its methods may be called
// concurrently. Its memory lives until it and every Env made from it are closed.
type Plugin struct {
	runtime   *Runtime
	path      string
	config    env.Source
	hash      string
	args      []byte
	engine    *engine
	compiled  wazero.CompiledModule
	metered   *meter.Result
	memoryMin uint64
	layout    layout
	exports   map[string]bool // functions that it exports
	spec      hostabi.EnvSpec

	image *image // state after rl_describe, nil if it cannot be captured

	users // its environments
}

// errorBytes is the size of the buffer for the guest's error text.
const errorBytes = 256

var (
	_ env.Plugin     = (*Plugin)(nil)
	_ env.Configured = (*Plugin)(nil)
	_ env.Sized      = (*Plugin)(nil)
)

// Spec returns the guest's description.
func (p *Plugin) Spec() hostabi.EnvSpec { return p.spec }

// bindingsBytes is the length of the bindings of one block, in records as the guest reads them.
func (p *Plugin) bindingsBytes() uint32 {
	return uint32(len(p.spec.Tensors) * p.spec.BindingBytes)
}

// Hash returns the SHA-256 of the file, in hexadecimal.
func (p *Plugin) Hash() string { return p.hash }

// Configuration returns the arguments; see env.Configured. Limits and grants are not state of a guest.
func (p *Plugin) Configuration() string { return string(p.args) }

func (p *Plugin) granted(capability string) bool { return slices.Contains(p.config.Grants, capability) }

// MemoryFor returns how much of an instance's memory blocks take; see env.Sized. Each is a window of whole pages.
func (p *Plugin) MemoryFor(blocks int, s *trajectory.Schema) (least, enough, limit uint64) {
	n := uint64(blocks)
	used := max(uint64(p.layout.stack.Top), p.layout.dataHigh)
	has := p.memoryMin
	if p.image != nil {
		has = p.image.size
	}
	return used + n*uint64(s.GuestBytes), has + n*(uint64(s.GuestBytes)+2*windowAlign), p.config.Memory
}

// Close releases the plugin. Environments made from it stay usable; the compiled code is released with the last.
func (p *Plugin) Close() error { return p.users.close() }

func (p *Plugin) release() error {
	if p.image != nil {
		p.image.close()
	}
	err := p.compiled.Close(context.Background())
	return errors.Join(err, p.runtime.leave())
}

// prepare starts the module once, asks it to describe itself, and takes the image that environments begin from.
func (p *Plugin) prepare(ctx context.Context) error {
	if p.memoryMin > p.config.Memory {
		return p.fail(CodeStart, fmt.Sprintf("begins with %s of memory, its limit is %s", byteSize(p.memoryMin),
			byteSize(p.config.Memory)), "raise the environment's memory limit, or give it a smaller stack", nil)
	}
	i, err := p.newInstance()
	if err != nil {
		return p.fail(CodeStart, "cannot be started: "+oneLine(err.Error()), "build it again", err)
	}
	defer i.close()
	var stop context.CancelFunc
	i.ctx.Context, stop = context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(p.runtime.ctx, stop)()
	if err := i.startUp(); err != nil {
		return p.startError(ctx, err)
	}
	if p.spec, err = i.describe(); err != nil {
		return p.startError(ctx, err)
	}
	if p.metered.State == "" {
		p.image, err = i.takeImage()
	}
	return err
}

// begin makes an instance that has described itself: from the image, or from scratch.
func (p *Plugin) begin() (*instance, error) {
	i, err := p.newInstance()
	if err != nil {
		return nil, err
	}
	if p.image != nil {
		err = i.restoreImage(p.image)
	} else if err = i.startUp(); err == nil {
		_, err = i.describe()
	}
	if err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

func (p *Plugin) fail(code, reason, help string, err error) *table.Error {
	return &table.Error{Code: code, Place: p.path, Reason: reason, Help: help, Err: err}
}

// startError gives a failure before the first environment its code and its advice.
func (p *Plugin) startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var load *table.Error
	if errors.As(err, &load) {
		return load
	}
	var call *callError
	if !errors.As(err, &call) {
		return err
	}
	help := "correct the guest, it must start with nothing but its arguments"
	switch call.kind {
	case env.FaultDeadline:
		help = "correct the guest, or raise the limit on its start if it has a reason to take so long"
	case env.FaultMemory:
		help = "raise the environment's memory limit, or correct the guest's rl_alloc"
	}
	return p.fail(CodeStart, fmt.Sprintf("fails in %s: %s", call.call, call.reason), help, err)
}

// startUp runs a module's start code.
func (i *instance) startUp() error {
	steps := []struct{ export, name string }{
		{meter.DataCall, "its data segments"},
		{meter.StartCall, "its start function"},
		{hostabi.ExportInitialize, hostabi.ExportInitialize},
	}
	for _, s := range steps {
		fn := i.module.ExportedFunction(s.export)
		if fn == nil {
			continue
		}
		if _, err := i.invoke(s.name, fn, i.plugin.config.Init); err != nil {
			return err
		}
	}
	return nil
}

// describe puts the arguments into the guest and reads its description.
func (i *instance) describe() (hostabi.EnvSpec, error) {
	p := i.plugin
	var none hostabi.EnvSpec
	var err error
	if i.errorPtr, err = i.allocate(errorBytes, 16); err != nil {
		return none, err
	}
	if len(p.args) > 0 {
		if i.argsPtr, err = i.allocate(uint32(len(p.args)), 16); err != nil {
			return none, err
		}
		copy(i.view(i.argsPtr, uint32(len(p.args))), p.args)
	}
	if err := i.introduce(); err != nil {
		return none, err
	}
	needed, err := i.askDescription(0, 0)
	if err != nil {
		return none, err
	}
	if needed > maxDescription {
		return none, p.describeError(fmt.Sprintf("wants %d bytes for its description, at most %d are accepted", needed, maxDescription), nil)
	}
	buf, err := i.allocate(needed, 16)
	if err != nil {
		return none, err
	}
	wrote, err := i.askDescription(buf, needed)
	if err != nil {
		return none, err
	}
	if wrote != needed {
		return none, p.describeError(fmt.Sprintf("wants %d bytes for its description at first and %d then", needed, wrote), nil)
	}
	spec, err := hostabi.ParseSpec(i.view(buf, needed))
	if err != nil {
		what := "describes itself wrongly: "
		if errors.Is(err, hostabi.ErrNotYet) {
			what = "describes what this host cannot run: "
		}
		return none, p.describeError(what+describes(err), err)
	}
	return spec, nil
}

// introduce tells a guest that wants to know what this host is.
func (i *instance) introduce() error {
	p := i.plugin
	if !p.exports[hostabi.ExportHost] {
		return nil
	}
	at, err := i.allocate(hostabi.HostBytes, 16)
	if err != nil {
		return err
	}
	own := hostabi.HostDesc{Size: hostabi.HostBytes, ABIMajor: hostabi.EnvABI.Major, ABIMinor: hostabi.EnvABI.Minor,
		Features: hostabi.HostFeatures, MaxTensors: hostabi.MaxTensors, MaxElems: hostabi.MaxTensorElems,
		MaxBlockBytes: trajectory.MaxBlockBytes}
	if _, err := binary.Encode(i.view(at, hostabi.HostBytes), binary.LittleEndian, &own); err != nil {
		return err
	}
	n, err := i.invokeExport(hostabi.ExportHost, p.config.Init, uint64(at), hostabi.HostBytes)
	if err != nil {
		return err
	}
	if n < 0 {
		return p.describeError("does not want to run on this host: "+i.words(hostabi.Status(n)), nil)
	}
	_, err = i.invokeExport(hostabi.ExportFree, p.config.Init, uint64(at), hostabi.HostBytes)
	return err
}

func (i *instance) askDescription(buf, size uint32) (uint32, error) {
	p := i.plugin
	n, err := i.invokeExport(hostabi.ExportDescribe, p.config.Init,
		uint64(i.argsPtr), uint64(len(p.args)), uint64(buf), uint64(size))
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, p.describeError("cannot describe itself: "+i.words(hostabi.Status(n)), nil)
	}
	if n == 0 {
		return 0, p.describeError("describes nothing", nil)
	}
	return uint32(n), nil
}

func (p *Plugin) describeError(reason string, err error) *table.Error {
	if err == nil {
		err = hostabi.ErrSpec
	}
	help := "correct what the guest's rl_describe writes, or its arguments"
	if errors.Is(err, hostabi.ErrNotYet) {
		help = "describe the environment in what this host runs: " + hostabi.Runs
	}
	return p.fail(CodeDescription, reason, help, err)
}

// describes returns an error about a description without its common prefix.
func describes(err error) string {
	return strings.TrimPrefix(err.Error(), hostabi.ErrSpec.Error()+": ")
}
