package wasm

import (
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

var (
	_ env.Renderer    = (*Env)(nil)
	_ env.PartStepper = (*Env)(nil)
)

// maxText bounds a picture of text.
const maxText = 1 << 20

// Render asks an environment for a picture; see env.Renderer. The guest gives memory for it and has it back afterwards.
func (e *Env) Render(index int, mode hostabi.RenderMode, view int, dst []byte) ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return dst, err
	}
	defer e.gate.Leave()
	spec := &e.plugin.spec
	if !e.plugin.file.Exports(hostabi.ExportRender) || mode&spec.Render.Modes == 0 || mode&(mode-1) != 0 ||
		index < 0 || index >= e.options.Envs || view < 0 || view > 255 {
		return dst, fmt.Errorf("%w: %s: render environment %d of %d in mode %#x, view %d", env.ErrUnsupported, e.options.Name,
			index, e.options.Envs, uint32(mode), view)
	}
	argument := uint64(bits.TrailingZeros32(uint32(mode)) | view<<8)
	n, err := rendered(e, index, argument, 0, 0)
	if err != nil {
		return dst, err
	}
	if err := checkPicture(e, mode, n); err != nil {
		return dst, err
	}
	if n == 0 {
		return dst, nil
	}
	err = e.borrow(n, func(buf uint32) error {
		again, err := rendered(e, index, argument, buf, n)
		if err == nil && again != n {
			err = badPicture(e, "%d bytes at first and %d then", n, again)
		}
		if picture := e.inst.View(buf, n); err == nil && mode == hostabi.RenderText && !utf8.Valid(picture) {
			err = badPicture(e, "text that is not UTF-8")
		} else if err == nil {
			dst = append(dst, picture...)
		}
		return err
	})
	return dst, err
}

// rendered calls rl_render and returns how many bytes the picture has.
func rendered(e *Env, index int, mode uint64, buf, room uint32) (uint32, error) {
	n, err := e.inst.Call(hostabi.ExportRender, e.plugin.file.Config.Step, e.batch, uint64(index), mode, uint64(buf), uint64(room))
	if err != nil {
		return 0, e.fault(err)
	}
	if n < 0 {
		return 0, refusal(e, n)
	}
	return uint32(n), nil
}

// checkPicture checks the size of a picture.
func checkPicture(e *Env, mode hostabi.RenderMode, n uint32) error {
	r := &e.plugin.spec.Render
	want := r.Width * r.Height * 3
	switch {
	case mode == hostabi.RenderText && n <= maxText:
		return nil
	case mode == hostabi.RenderText:
		return badPicture(e, "%d bytes of text, at most %d are taken", n, maxText)
	case mode == hostabi.RenderRGBA:
		want = r.Width * r.Height * 4
	}
	if uint64(n) != uint64(want) {
		return badPicture(e, "%d bytes, want %d for %d × %d pixels", n, want, r.Width, r.Height)
	}
	return nil
}

func badPicture(e *Env, format string, args ...any) error {
	return outputFault(e, hostabi.ExportRender, "a picture of "+format, args...)
}

// outputFault is the fault of a call that wrote something that is not allowed. It does not poison the Env.
func outputFault(e *Env, call, format string, args ...any) error {
	return &env.Fault{Kind: env.FaultOutput, Name: e.options.Name, Source: e.plugin.file.Path, Call: call, Env: -1,
		Step: e.inst.Steps(), Err: fmt.Errorf(format, args...)}
}
