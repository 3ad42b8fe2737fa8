package web

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// drawing is a scripted environment of two pixels, or of text.
type drawing struct {
	env.Plugin
	modes hostabi.RenderMode
	fps   float32
	fault error // of each picture
	slow  func()
}

func (d *drawing) describe(s *hostabi.EnvSpec) {
	s.Render.Modes, s.Render.Width, s.Render.Height, s.Render.FPS = d.modes, 2, 1, d.fps
}

// Spec describes the pictures too.
func (d *drawing) Spec() hostabi.EnvSpec {
	s := d.Plugin.Spec()
	d.describe(&s)
	return s
}

// NewEnv makes environments that draw.
func (d *drawing) NewEnv(o env.Options) (env.Env, error) {
	e, err := d.Plugin.NewEnv(o)
	if err != nil {
		return nil, err
	}
	spec := *e.Spec()
	d.describe(&spec)
	return &drawn{e, d, &spec}, nil
}

type drawn struct {
	env.Env
	of   *drawing
	spec *hostabi.EnvSpec
}

// Spec describes the pictures too.
func (d *drawn) Spec() *hostabi.EnvSpec { return d.spec }

// Render draws a red and a blue pixel, or text that a page must not run.
func (d *drawn) Render(_ int, mode hostabi.RenderMode, _ int, dst []byte) ([]byte, error) {
	if d.of.slow != nil {
		d.of.slow()
	}
	if mode == hostabi.RenderText {
		return append(dst, "<b onclick=alert(1)>@</b>\n\x1b[31m"...), d.of.fault
	}
	return append(dst, 255, 0, 0, 0, 0, 255), d.of.fault
}

// stageOf is a stage of a scripted environment.
func stageOf(t *testing.T, d *drawing, s plugintest.Script, keys play.Keys) *Stage {
	t.Helper()
	d.Plugin = plugintest.New(s)
	g, err := play.New(d, play.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &Stage{Show: play.NewShow(g, keys, 0), What: "scripted", Close: g.Close}
}

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
