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
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/module"

	"github.com/rlhost/rlhost/hostabi"
)

// Plugin is a module of environments that was loaded and checked. It implements env.Plugin; its methods may be called
// concurrently. Its memory lives until it and every Env made from it are closed.
type Plugin struct {
	module *guest.Module
	file   *module.File // of it
	spec   hostabi.EnvSpec
}

func newPlugin(m *guest.Module) *Plugin { return &Plugin{module: m, file: m.File} }

var (
	_ env.Plugin     = (*Plugin)(nil)
	_ env.Configured = (*Plugin)(nil)
	_ env.Sized      = (*Plugin)(nil)
)

// Hash returns the SHA-256 of the file, in hexadecimal.
func (p *Plugin) Hash() string { return p.file.Hash }

// Close releases the plugin. Environments that were made from it stay usable.
func (p *Plugin) Close() error { return p.module.Close() }

// Spec returns the guest's description.
func (p *Plugin) Spec() hostabi.EnvSpec { return p.spec }

// bindingsBytes is the length of the bindings of one block, in records as the guest reads them.
func (p *Plugin) bindingsBytes() uint32 {
	return uint32(len(p.spec.Tensors) * p.spec.BindingBytes)
}

// StepsParts reports whether the module steps parts of a batch; see env.Parted.
func (p *Plugin) StepsParts() bool { return p.file.Exports(hostabi.ExportStepRange) }

// Configuration returns the arguments; see env.Configured. Limits and grants are not state of a guest.
func (p *Plugin) Configuration() string { return string(p.file.Args) }

// MemoryFor returns how large an instance's memory gets with blocks in it; see env.Sized. Each is a window of whole pages.
func (p *Plugin) MemoryFor(blocks int, s *trajectory.Schema) (least, end uint64) {
	l := &p.file.Layout
	used := max(uint64(l.Stack.Top), l.DataHigh)
	return used + uint64(blocks)*uint64(s.GuestBytes), p.file.MemoryMax
}

// prepare starts the module once, asks it to describe itself, and takes the image that environments begin from.
func (p *Plugin) prepare(ctx context.Context) error {
	return p.module.Prepare(ctx, func(i *guest.Instance) (err error) {
		p.spec, err = describe(i, p.file)
		return err
	})
}

// newInstance makes an instance that has described itself. On an error the instance, if there is one, is still to be closed.
func (p *Plugin) newInstance() (*guest.Instance, error) {
	return p.module.NewInstance(func(i *guest.Instance) error {
		_, err := describe(i, p.file)
		return err
	})
}

// describe puts the arguments into the guest and reads its description.
func describe(i *guest.Instance, f *module.File) (hostabi.EnvSpec, error) {
	var none hostabi.EnvSpec
	var err error
	if err = i.TakeErrorText(); err != nil {
		return none, err
	}
	if len(f.Args) > 0 {
		if i.ArgsPtr, err = i.Allocate(uint32(len(f.Args)), 16); err != nil {
			return none, err
		}
		copy(i.View(i.ArgsPtr, uint32(len(f.Args))), f.Args)
	}
	if err := introduce(i, f); err != nil {
		return none, err
	}
	needed, err := askDescription(i, f, 0, 0)
	if err != nil {
		return none, err
	}
	if needed > hostabi.MaxDescriptionBytes {
		return none, describeError(f, fmt.Sprintf("wants %d bytes for its description, at most %d are accepted", needed, hostabi.MaxDescriptionBytes), nil)
	}
	buf, err := i.Allocate(needed, 16)
	if err != nil {
		return none, err
	}
	wrote, err := askDescription(i, f, buf, needed)
	if err != nil {
		return none, err
	}
	if wrote != needed {
		return none, describeError(f, fmt.Sprintf("wants %d bytes for its description at first and %d then", needed, wrote), nil)
	}
	spec, err := hostabi.ParseSpec(i.View(buf, needed))
	if err != nil {
		what := "describes itself wrongly: "
		switch {
		case errors.Is(err, hostabi.ErrTooOld):
			what = fmt.Sprintf("needs a later host than this rlhost, which speaks ABI %v: ", hostabi.EnvABI)
		case errors.Is(err, hostabi.ErrNotYet):
			what = "describes what this host cannot run: "
		}
		return none, describeError(f, what+describes(err), err)
	}
	return spec, nil
}

// introduce describes this host to a guest that asks.
func introduce(i *guest.Instance, f *module.File) error {
	if !f.Exports(hostabi.ExportHost) {
		return nil
	}
	at, err := i.Allocate(hostabi.HostBytes, 16)
	if err != nil {
		return err
	}
	own := hostabi.HostDesc{Size: hostabi.HostBytes, ABIMajor: hostabi.EnvABI.Major, ABIMinor: hostabi.EnvABI.Minor,
		Features: hostabi.HostFeatures, MaxTensors: hostabi.MaxTensors, MaxElems: hostabi.MaxTensorElems,
		MaxBlockBytes: trajectory.MaxBlockBytes}
	if _, err := binary.Encode(i.View(at, hostabi.HostBytes), binary.LittleEndian, &own); err != nil {
		return err
	}
	n, err := i.Call(hostabi.ExportHost, f.Config.Init, uint64(at), hostabi.HostBytes)
	if err != nil {
		return err
	}
	if n != 0 {
		return f.Fail(module.CodeDescription, "does not want to run on this host: "+i.Words(hostabi.Status(n)),
			"let the guest's rl_host return 0, or update rlhost if the guest needs features that its record does not have", hostabi.ErrSpec)
	}
	_, err = i.Call(hostabi.ExportFree, f.Config.Init, uint64(at), hostabi.HostBytes)
	return err
}

func askDescription(i *guest.Instance, f *module.File, buf, size uint32) (uint32, error) {
	n, err := i.Call(hostabi.ExportDescribe, f.Config.Init,
		uint64(i.ArgsPtr), uint64(len(f.Args)), uint64(buf), uint64(size))
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, describeError(f, "cannot describe itself: "+i.Words(hostabi.Status(n)), nil)
	}
	if n == 0 {
		return 0, describeError(f, "describes nothing", nil)
	}
	return uint32(n), nil
}

func describeError(f *module.File, reason string, err error) *table.Error {
	if err == nil {
		err = hostabi.ErrSpec
	}
	code, help := module.CodeDescription, f.Language.Describes()
	switch {
	case errors.Is(err, hostabi.ErrTooOld):
		code, help = module.CodeFuture, fmt.Sprintf("update rlhost, or build the guest for ABI %v", hostabi.EnvABI)
	case errors.Is(err, hostabi.ErrNotYet):
		help = "describe the environment in what this host runs: " + hostabi.Runs
	}
	return f.Fail(code, reason, help, err)
}

// describes returns an error about a description without its common prefix.
func describes(err error) string {
	return strings.TrimPrefix(err.Error(), hostabi.ErrSpec.Error()+": ")
}
