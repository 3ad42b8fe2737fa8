package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"

	"github.com/rlhost/rlhost/pipeline/play"
)

// frame is what a page is told at once. Text is the environment's or the policy's, and may have any characters.
type frame struct {
	Picture []byte  `json:"picture,omitempty"` // PNG
	Text    string  `json:"text,omitempty"`    // instead of a picture
	Said    string  `json:"said,omitempty"`
	Note    string  `json:"note,omitempty"`    // that stands out
	By      play.By `json:"by,omitempty"`      // who plays
	Problem string  `json:"problem,omitempty"` // why there is no picture
}

// failed is the frame of a stage that cannot be shown.
func failed(err error) *frame { return &frame{Problem: err.Error()} }

// event is a frame as a server-sent event.
func (f *frame) event() ([]byte, error) {
	data, err := json.Marshal(f)
	return fmt.Appendf(nil, "data: %s\n\n", data), err
}

// painter makes the frames of a stage.
type painter struct {
	stage   *Stage
	rgb     []byte
	picture *image.RGBA
	buffers buffer
}

// frame returns the game as it is now.
func (p *painter) frame() (f *frame, err error) {
	show := p.stage.Show
	g := show.Game
	show.Changed = false
	f = &frame{By: g.By, Said: fmt.Sprintf("step %d, return %.6g, reward %.4g, episode %d, %.4g steps a second, %s", g.Steps(), g.Return, g.Reward, g.Episode, show.Rate, p.stage.What)}
	switch {
	case show.Note != "":
		f.Note = show.Note
	case g.Over:
		f.Note = g.Ended
	case show.Paused:
		f.Note = "paused"
	}
	switch text, colour := g.Draws(); {
	case colour:
		f.Picture, err = p.png(g)
	case text:
		f.Text, err = g.Text()
	default:
		err = fmt.Errorf("%s: %w", g.Spec().Name, play.ErrNoPicture)
	}
	return f, err
}

// png draws the game.
func (p *painter) png(g *play.Game) (encoded []byte, err error) {
	if p.rgb, err = g.Colour(p.rgb); err != nil {
		return nil, err
	}
	r := g.Spec().Render
	if p.picture == nil {
		p.picture = image.NewRGBA(image.Rect(0, 0, r.Width, r.Height))
	}
	to := p.picture.Pix[:0]
	for pixel := range slices.Chunk(p.rgb, 3) {
		to = append(append(to, pixel...), 0xff)
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: &p.buffers}
	err = encoder.Encode(&b, p.picture)
	return b.Bytes(), err
}

// buffer keeps the memory of an encoder for the next picture.
type buffer struct{ kept *png.EncoderBuffer }

// Get returns what Put was given last.
func (b *buffer) Get() *png.EncoderBuffer { return b.kept }

// Put keeps a buffer.
func (b *buffer) Put(kept *png.EncoderBuffer) { b.kept = kept }
