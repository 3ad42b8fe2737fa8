package worker

import (
	"fmt"
	"math/bits"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// doRender is the call that draws an environment.
const doRender = "render"

// Render has a process draw one of its environments; see env.Renderer.
func (e *batch) Render(index int, mode hostabi.RenderMode, view int, dst []byte) ([]byte, error) {
	if err := e.gate.Enter(); err != nil {
		return dst, err
	}
	defer e.gate.Leave()
	w, i := e.find(index)
	r := &e.Spec().Render
	if w == nil || r.Modes&mode == 0 || mode&(mode-1) != 0 || view < 0 || view > 255 {
		return dst, e.noSuchEnv(index)
	}
	picture, err := w.state(native.EnvStateCall{Do: doRender, Env: i, Mode: bits.TrailingZeros32(uint32(mode)) | view<<8}, nil)
	if err != nil {
		return dst, e.fault(hostabi.ExportRender, err)
	}
	if want := pictureBytes(r, mode); want != 0 && len(picture) != want {
		return dst, e.newFault(env.FaultOutput, hostabi.ExportRender, index,
			fmt.Errorf("a picture of %d bytes, want %d for %d × %d pixels", len(picture), want, r.Width, r.Height))
	}
	return append(dst, picture...), nil
}

// pictureBytes is the size of a picture; 0 where it has none.
func pictureBytes(r *hostabi.Render, mode hostabi.RenderMode) int {
	switch mode {
	case hostabi.RenderRGB:
		return r.Width * r.Height * 3
	case hostabi.RenderRGBA:
		return r.Width * r.Height * 4
	}
	return 0
}
