package play

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Draws reports whether there are pictures in text and in colour.
func (g *Game) Draws() (text, colour bool) {
	if g.again == nil {
		if _, ok := g.driver.Env.(env.Renderer); !ok {
			return false, false
		}
	}
	modes := g.spec.Render.Modes
	return modes&hostabi.RenderText != 0, modes&(hostabi.RenderRGB|hostabi.RenderRGBA) != 0
}

// Text returns a picture in text.
func (g *Game) Text() (string, error) {
	picture, err := g.render(hostabi.RenderText, nil)
	return string(picture), err
}

// Colour returns a picture of three bytes a pixel, in the memory of dst where it is large enough.
func (g *Game) Colour(dst []byte) ([]byte, error) {
	if g.spec.Render.Modes&hostabi.RenderRGB != 0 {
		return g.render(hostabi.RenderRGB, dst[:0])
	}
	picture, err := g.render(hostabi.RenderRGBA, dst[:0])
	if err != nil {
		return nil, err
	}
	opaque := picture[:0]
	for pixel := range slices.Chunk(picture, 4) {
		opaque = append(opaque, pixel[:3]...)
	}
	return opaque, nil
}

// render asks the environment for a picture.
func (g *Game) render(mode hostabi.RenderMode, dst []byte) ([]byte, error) {
	picture, err := g.renderer()(mode, dst)
	if errors.Is(err, env.ErrUnsupported) {
		return nil, fmt.Errorf("%w: %w", ErrNoPicture, err)
	}
	return picture, err
}

// renderer returns what draws.
func (g *Game) renderer() func(mode hostabi.RenderMode, dst []byte) ([]byte, error) {
	if g.again != nil {
		return g.again.Render
	}
	return func(mode hostabi.RenderMode, dst []byte) ([]byte, error) {
		from, ok := g.driver.Env.(env.Renderer)
		if !ok || g.spec.Render.Modes&mode == 0 {
			return nil, ErrNoPicture
		}
		return from.Render(0, mode, 0, dst)
	}
}
