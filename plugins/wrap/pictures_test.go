package wrap_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

var pictureLists = map[string][]env.Wrapper{
	"smaller":             {{"resize": []any{int64(1), int64(2)}}},
	"larger":              {{"resize": []any{int64(5), int64(4)}}},
	"within a limit":      {{"resize": []any{int64(3), int64(2)}}, {"time_limit": 4}, {"reward_scale": 0.5}},
	"around others":       {{"time_limit": 5}, {"reward_clip": 0.5}, {"sticky_action": 0.3}, {"resize": []any{int64(3), int64(2)}}},
	"twice, and repeated": {{"reward_scale": 2.0}, {"resize": []any{int64(4), int64(6)}}, {"time_limit": 5}, {"resize": []any{int64(2), int64(2)}}, {"action_repeat": 2}},
}

// Environments that step in separate memory keep every promise of env.Env.
func TestPictures_KeepThePromisesOfEnvironments(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{0, hostabi.NextStep} {
		for name, list := range pictureLists {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				s := uneven()
				s.Autoreset, s.Picture = mode, true
				s.Legal = func(at plugintest.At, value int) bool { return value == (at.Env+at.Step)%2 || at.Step%3 == 0 }
				if slices.ContainsFunc(list, func(w env.Wrapper) bool { return w["sticky_action"] != nil }) {
					s.Legal = nil
				}
				s.Infos = []hostabi.Tensor{{Path: "height"}}
				s.Tell = func(at plugintest.At, figures []float32) { figures[0] = float32(at.Step) }
				plugintest.TestEnv(t, made(t, s, list...), plugintest.Options{Seed: 7})
			})
		}
	}
}

// Modules step into separate memory as they do into the host's blocks.
func TestPictures_GuestsKeepThePromisesOfEnvironments(t *testing.T) {
	load := guests(t)
	for name, list := range map[string][]env.Wrapper{
		"minatar-breakout@1": {{"time_limit": 9}, {"resize": []any{int64(7), int64(12)}}, {"flatten": true}},
		"squash@1":           {{"noop_reset": int64(3)}, {"frame_skip": int64(2)}, {"fire_reset": int64(1)}, {"resize": []any{int64(12), int64(10)}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := load(t, name, list)
			if err != nil {
				t.Fatal(err)
			}
			plugintest.TestEnv(t, p, plugintest.Options{Seed: 3, Steps: 60})
		})
	}
}

// area is the mean of the part of a picture that an element covers, counted in elements of a grid that both sizes divide.
func area(src []byte, h, w, channels, toH, toW int) (dst []byte) {
	for y := range toH {
		for x := range toW {
			for c := range channels {
				sum := 0
				for gy := y * h; gy < (y+1)*h; gy++ {
					for gx := x * w; gx < (x+1)*w; gx++ {
						sum += int(src[(gy/toH*w+gx/toW)*channels+c])
					}
				}
				dst = append(dst, byte((2*sum+h*w)/(2*h*w)))
			}
		}
	}
	return dst
}

func TestResize_IsTheMeanOfAnArea(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range [][4]int{{42, 32, 17, 20}, {10, 10, 7, 3}, {5, 8, 5, 4}, {9, 4, 3, 4}, {2, 2, 1, 1}} {
		for _, channels := range []int{1, 3} {
			src := make([]byte, c[0]*c[1]*channels)
			for i := range src {
				src[i] = byte(random.Uint32())
			}
			got := resized(t, src, c[0], c[1], channels, c[2], c[3])
			if want := area(src, c[0], c[1], channels, c[2], c[3]); !slices.Equal(got, want) {
				t.Errorf("%v with %d channels differs from the mean", c, channels)
			}
		}
	}
}

// Elements are in the middle of their areas: if two become four, the inner ones are a quarter off.
func TestResize_GrowsBetweenTheNearest(t *testing.T) {
	if got := resized(t, []byte{0, 200}, 1, 2, 1, 1, 4); !slices.Equal(got, []byte{0, 50, 150, 200}) {
		t.Errorf("one axis: %v", got)
	}
	if got := resized(t, []byte{0, 10, 20, 41}, 2, 2, 1, 3, 3); !slices.Equal(got, []byte{0, 5, 10, 10, 18, 26, 20, 31, 41}) {
		t.Errorf("both axes: %v", got) // the middle is 71 / 4, which is nearer to 18; 25.5 and 30.5 are rounded up
	}
	if got := resized(t, []byte{7, 9, 1, 200, 50, 60}, 1, 6, 1, 2, 3); !slices.Equal(got, []byte{8, 101, 55, 8, 101, 55}) {
		t.Errorf("one grows, one shrinks: %v", got)
	}
}

// The luma of red, green, blue, white and black by hand: 0.299, 0.587 and 0.114 of 255.
func TestGrayscale_WeighsColours(t *testing.T) {
	src := []byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0}
	got := painted(t, src, []int{1, 5, 3}, hostabi.TensorImageHWC, env.Wrapper{"grayscale": true})
	if !slices.Equal(got, []byte{76, 150, 29, 255, 0}) {
		t.Errorf("luma %v", got)
	}
}

// It runs where the project's virtual environment has Pillow, which rounds twice, after rows and after columns, and whose areas are of whole pixels.
func TestPictures_AgreeWithPillow(t *testing.T) {
	python := filepath.Join("..", "..", ".venv", "bin", "python")
	if exec.Command(python, "-c", "import PIL").Run() != nil {
		t.Skipf("%s with Pillow is not there", python)
	}
	const script = `
import sys
from PIL import Image
a = Image.frombytes("RGB", (160, 210), sys.stdin.buffer.read())
out = sys.stdout.buffer
out.write(a.convert("L").tobytes())
out.write(a.resize((40, 70), Image.BOX).tobytes())
out.write(a.resize((200, 250), Image.BILINEAR).tobytes())
`
	src := make([]byte, 210*160*3)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range src {
		src[i] = byte(random.Uint32())
	}
	cmd := exec.Command(python, "-c", script)
	cmd.Stdin = bytes.NewReader(src)
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	gray, small, large := want[:210*160], want[210*160:][:70*40*3], want[210*160+70*40*3:]
	if got := painted(t, src, []int{210, 160, 3}, hostabi.TensorImageHWC, env.Wrapper{"grayscale": true}); !slices.Equal(got, gray) {
		t.Error("the luma is not Pillow's")
	}
	for name, pair := range map[string][2][]byte{"smaller": {resized(t, src, 210, 160, 3, 70, 40), small}, "larger": {resized(t, src, 210, 160, 3, 250, 200), large}} {
		for i, v := range pair[0] {
			if d := int(v) - int(pair[1][i]); d < -1 || d > 1 {
				t.Errorf("%s: element %d is %d, Pillow's %d", name, i, v, pair[1][i])
				break
			}
		}
	}
}

// Channels may come first.
func TestPictures_PlanesAreTheSamePictures(t *testing.T) {
	planar := []byte{1, 2, 3, 4, 5, 6, 100, 90, 80, 70, 60, 50, 0, 0, 255, 255, 7, 9}
	var whole []byte
	for i := range 6 {
		whole = append(whole, planar[i], planar[6+i], planar[12+i])
	}
	for _, w := range []env.Wrapper{{"grayscale": true}, {"resize": []any{int64(3), int64(2)}}} {
		a := painted(t, whole, []int{2, 3, 3}, hostabi.TensorImageHWC, w)
		b := painted(t, planar, []int{3, 2, 3}, hostabi.TensorImageCHW, w)
		channels, pixels := len(a)/6, 6
		for i := range a {
			if at := i%channels*pixels + i/channels; b[at] != a[i] {
				t.Errorf("%v: %v with the channels last, %v with them first", w, a, b)
				break
			}
		}
	}
}

// Copied per step and environment: 20 bytes of the other observation in and out, 4 of the action, 6 of results; 2 are painted. After eight
// steps 26 observed bytes go to the front.
func TestPictures_CopiesAreCounted(t *testing.T) {
	s := plugintest.Script{Picture: true, Length: func(int, int) int { return 100 }}
	d := driven(t, made(t, s, env.Wrapper{"resize": []any{int64(1), int64(2)}}, env.Wrapper{"time_limit": 50}), 3, hostabi.SameStep)
	for range 9 {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := env.Copied(d.Env), uint64(3*(20+20+2+9*(20+4+6+20+2)+26)); got != want {
		t.Errorf("%d bytes are counted, want %d", got, want)
	}
}

// The steps before a picture is made: eight, of the inner environment's observations.
func TestPictures_ReportTheirMemory(t *testing.T) {
	s := plugintest.Script{Picture: true, Length: func(int, int) int { return 100 }}
	smaller := env.Wrapper{"resize": []any{int64(1), int64(2)}}
	schema, err := trajectory.NewSchema(plugintest.New(s).Spec(), trajectory.Shape{Steps: 8, Envs: 3})
	if err != nil {
		t.Fatal(err)
	}
	one := int64(schema.Bytes)
	for _, c := range []struct {
		list        []env.Wrapper
		least, most int64
	}{
		{[]env.Wrapper{{"time_limit": 50}}, 0, 0},
		{[]env.Wrapper{{"time_limit": 50}, smaller, {"reward_clip": 1.0}}, one, one},
		{[]env.Wrapper{smaller, {"resize": []any{int64(2), int64(2)}}}, one + 1, 2 * one},
	} {
		if got := env.KeptBytes(made(t, s, c.list...), 3); got < c.least || got > c.most {
			t.Errorf("%v keep %d bytes, want %d to %d", c.list, got, c.least, c.most)
		}
	}
}

func resized(t *testing.T, src []byte, h, w, channels, toH, toW int) []byte {
	t.Helper()
	return painted(t, src, []int{h, w, channels}, hostabi.TensorImageHWC, env.Wrapper{"resize": []any{int64(toH), int64(toW)}})
}

// painted returns a wrapper's version of a picture, as an observation and as an episode's last one.
func painted(t *testing.T, src []byte, shape []int, flag hostabi.TensorFlags, w env.Wrapper) []byte {
	t.Helper()
	p, err := wrap.New(&still{Plugin: plugintest.New(plugintest.Script{Length: func(int, int) int { return 1 }}), shape: shape, flag: flag, picture: src}, []env.Wrapper{w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := driven(t, p, 1, hostabi.SameStep)
	first := slices.Clone(d.Observations()[1].Data)
	if _, err := d.Step(); err != nil {
		t.Fatal(err)
	}
	if last := d.Observed(trajectory.Final)[1].Data; !slices.Equal(last, first) {
		t.Errorf("the last observation is %v, the first %v", last, first)
	}
	return first
}

// still is a plugin whose environments also observe a picture that stays.
type still struct {
	*plugintest.Plugin
	shape   []int
	flag    hostabi.TensorFlags
	picture []byte
}

func (p *still) Spec() hostabi.EnvSpec {
	s := p.Plugin.Spec()
	t := hostabi.Tensor{Role: hostabi.RoleObservation, Index: 1, Path: "picture", DType: hostabi.U8, Rank: 3, High: 255, Flags: p.flag}
	for i, n := range p.shape {
		t.Shape[i] = uint32(n)
	}
	last := t
	last.Role, last.Pair = hostabi.RoleFinalObservation, 1
	s.Tensors = append(slices.Clone(s.Tensors), t, last)
	return s
}

func (p *still) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &stillEnv{Env: e, picture: p.picture}, err
}

type stillEnv struct {
	env.Env
	picture []byte
	tr      trajectory.Trajectory
}

func (e *stillEnv) Bind(b env.Block) error {
	e.tr = b.Trajectory
	return e.Env.Bind(b)
}

func (e *stillEnv) Reset(t int, mask []uint8, seeds []uint64) error {
	copy(e.tr.Row(trajectory.Obs.At(1), t).Data, e.picture)
	return e.Env.Reset(t, mask, seeds)
}

func (e *stillEnv) Step(t int) error {
	copy(e.tr.Row(trajectory.Obs.At(1), t+1).Data, e.picture)
	copy(e.tr.Row(trajectory.FinalObs.At(1), 0).Data, e.picture)
	return e.Env.Step(t)
}
