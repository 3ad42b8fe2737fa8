// Lander: the environment of lander-c in Go, bit for bit, with the sines and cosines of package rlmath.
package main

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/rlmath"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const maxSteps = 300

// lander is what is saved, as C lays it out.
type lander struct {
	X, Y, VX, VY, Angle, Turn float64
	Steps, _                  int32
}

func (l *lander) look(obs []float32) {
	for i, x := range [...]float64{l.X, l.Y, l.VX, l.VY, l.Angle, l.Turn} {
		obs[i] = float32(x)
	}
}

func (l *lander) Reset(rng *sdk.Rand, obs []float32) {
	*l = lander{X: float64(rng.Uniform(-0.5, 0.5)), Y: 1, VX: float64(rng.Uniform(-0.02, 0.02)), Angle: float64(rng.Uniform(-0.3, 0.3))}
	l.look(obs)
}

// engines returns the pull of the main engine and the turn by the side ones.
func engines(action int32) (main, side float64) {
	switch action {
	case 1:
		return 0, 0.01
	case 2:
		return 0.004, 0
	case 3:
		return 0, -0.01
	}
	return 0, 0
}

// Step rounds each product before it is added: a processor with a fused multiply-add has other bits.
func (l *lander) Step(_ *sdk.Rand, action []int32, obs []float32) sdk.Result {
	main, side := engines(action[0])
	l.VX -= float64(main * rlmath.Sin(l.Angle))
	l.VY = l.VY + float64(main*rlmath.Cos(l.Angle)) - 0.0015
	l.Turn += side
	l.X += l.VX
	l.Y += l.VY
	l.Angle += l.Turn
	l.Steps++
	l.look(obs)
	down, lost := l.Y <= 0, rlmath.Abs(l.X) > 1.5 || l.Y > 2 || rlmath.Abs(l.Angle) > 3
	soft := l.VY > -0.04 && rlmath.Abs(l.Angle) < 0.3 && rlmath.Abs(l.X) < 0.4
	r := sdk.Result{Terminated: down || lost, Truncated: l.Steps >= maxSteps}
	switch {
	case down && soft:
		r.Reward = 1
	case down || lost:
		r.Reward = -1
	case action[0] != 0:
		r.Reward = -0.001
	}
	return r
}

// Draw draws the craft above its pad.
func (l *lander) Draw(p *sdk.Picture) {
	p.Rect(0, 0, 60, 40, 0x101820)
	p.Rect(22, 38, 16, 2, 0x808080)
	p.Disc(30+float32(l.X)*20, 36-float32(l.Y)*16, 2.5, 0xffcc00)
}

func (l *lander) String() string {
	return "step " + strconv.Itoa(int(l.Steps)) + " of " + strconv.Itoa(maxSteps)
}

func (l *lander) AppendBinary(b []byte) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, l)
}

func (l *lander) UnmarshalBinary(b []byte) error {
	if len(b) != binary.Size(l) {
		return errors.New("not a saved lander")
	}
	_, err := binary.Decode(b, binary.LittleEndian, l)
	return err
}

func init() {
	wasm.Serve(sdk.Spec{Name: "lander@1", Action: sdk.Discrete(4), Obs: sdk.Box(0, 0, 6), EpisodeLimit: maxSteps,
		PictureWidth: 60, PictureHeight: 40, PictureFPS: 30},
		func(*sdk.Config) (*lander, error) { return &lander{}, nil })
}

func main() {}
