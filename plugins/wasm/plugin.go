package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// Plugin is a module of environments that was loaded and checked. It implements env.Plugin; its methods may be called
// concurrently. Its memory lives until it and every Env made from it are closed.
type Plugin struct {
	*Module
	spec hostabi.EnvSpec
}

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

// StepsParts reports whether the module steps parts of a batch; see env.Parted.
func (p *Plugin) StepsParts() bool { return p.exports[hostabi.ExportStepRange] }

// Configuration returns the arguments; see env.Configured. Limits and grants are not state of a guest.
func (p *Plugin) Configuration() string { return string(p.args) }

// MemoryFor returns how large an instance's memory gets with blocks in it; see env.Sized. Each is a window of whole pages.
func (p *Plugin) MemoryFor(blocks int, s *trajectory.Schema) (least, end uint64) {
	used := max(uint64(p.layout.stack.Top), p.layout.dataHigh)
	return used + uint64(blocks)*uint64(s.GuestBytes), p.memoryMax
}

// prepare starts the module once, asks it to describe itself, and takes the image that environments begin from.
func (p *Plugin) prepare(ctx context.Context) error {
	return p.Module.prepare(ctx, func(i *instance) (err error) {
		p.spec, err = i.describe()
		return err
	})
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
	if needed > hostabi.MaxDescriptionBytes {
		return none, p.describeError(fmt.Sprintf("wants %d bytes for its description, at most %d are accepted", needed, hostabi.MaxDescriptionBytes), nil)
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

func (m *Module) describeError(reason string, err error) *table.Error {
	if err == nil {
		err = hostabi.ErrSpec
	}
	help := "correct what the guest's rl_describe writes, or its arguments"
	if errors.Is(err, hostabi.ErrNotYet) {
		help = "describe the environment in what this host runs: " + hostabi.Runs
	}
	return m.fail(CodeDescription, reason, help, err)
}

// describes returns an error about a description without its common prefix.
func describes(err error) string {
	return strings.TrimPrefix(err.Error(), hostabi.ErrSpec.Error()+": ")
}
