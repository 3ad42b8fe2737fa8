package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// The environments that people play draw pictures in text and in colour, and a picture follows what happens.
func TestGuests_DrawPictures(t *testing.T) {
	t.Parallel()
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	for _, use := range []string{"cartpole@1", "cartpole-positions@1", "connectfour@1", "minatar-breakout@1", "minatar-freeway@1",
		"../../examples/plugins/lunarlander-cpp/lunarlander.wasm"} {
		source := env.DefaultSource()
		source.Use = use
		plugin, err := parts.Load(context.Background(), "", graph.EnvTable{Source: source}, ".")
		if err != nil {
			t.Fatal(err)
		}
		d, err := env.NewDriver(plugin, env.DriverOptions{Options: env.Options{Name: "drawn", Envs: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Reset(nil, []uint64{1, 2}); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []hostabi.RenderMode{hostabi.RenderText, hostabi.RenderRGB} {
			seen := map[string]bool{}
			for step := range 60 {
				d.Draw(func(index int) uint64 { return env.Seed(uint64(step), index) })
				if _, err := d.Step(); err != nil {
					t.Fatal(err)
				}
				picture, err := d.Env.(env.Renderer).Render(1, mode, 0, nil)
				if err != nil {
					t.Fatalf("%s: %v", use, err)
				}
				if mode == hostabi.RenderRGB && !bytes.ContainsFunc(picture, func(r rune) bool { return r > 0x40 }) {
					t.Errorf("%s: a picture is dark", use)
				}
				seen[string(picture)] = true
			}
			if len(seen) < 10 {
				t.Errorf("%s: 60 steps give %d pictures in mode %d", use, len(seen), mode)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := plugin.Close(); err != nil {
			t.Error(err)
		}
	}
}
