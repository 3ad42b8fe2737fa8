package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// buildRust builds a crate of testdata.
func buildRust(t *testing.T, folder, name string) string {
	t.Helper()
	out := t.TempDir()
	build := exec.Command(testkit.NeedsRust(t, testkit.WasmTarget), "build", "--quiet", "--offline", "--release", "--target", testkit.WasmTarget, "--target-dir", out)
	build.Dir = filepath.Join("testdata", folder)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cargo build: %v\n%s", err, text)
	}
	return filepath.Join(out, testkit.WasmTarget, "release", name+".wasm")
}

// Environments with several observations, a discount and figures pass every check, and write the same bits in every
// language.
func TestGuests_ObserveSeveralThings(t *testing.T) {
	r := newRuntime(t)
	hashes := map[string]uint64{}
	for language, file := range map[string]string{
		"C": buildC(t, "forager/forager.c", false), "Go": buildGo(t, "forager"), "Rust": buildRust(t, "forager/rust", "forager"),
	} {
		p := loadGuest(t, r, file, nil)
		if spec := p.Spec(); len(spec.All(hostabi.RoleObservation)) != 3 || spec.All(hostabi.RoleObservation)[1].Path != "inventory/gold" {
			t.Errorf("%s observes %s", language, spec.Spaces(hostabi.RoleObservation))
		}
		if spec := p.Spec(); len(spec.All(hostabi.RoleInfo)) != 2 || len(spec.All(hostabi.RoleDiscount)) != 1 {
			t.Errorf("%s describes %+v", language, spec.Tensors)
		}
		for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 300, Seed: 1}) {
			if got.Verdict != envcheck.OK {
				t.Errorf("%s: %+v", language, got)
			}
		}
		plugintest.TestEnv(t, p, plugintest.Options{Envs: 7, Seed: 3})
		hashes[language] = traceHash(t, p)
	}
	if hashes["C"] != hashes["Go"] || hashes["C"] != hashes["Rust"] {
		t.Errorf("the guests write %x: want the same bits", hashes)
	}
}

// Several observations are learned from, with the environment's own discount: 3 is the best return.
func TestGuests_SeveralObservationsAreLearned(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("forager.toml", fmt.Sprintf("rlhost = 1\n[run]\nname = \"forager\"\nseed = 1\nstop = { env_steps = 1 }\n[env.forager]\nuse = %q\n"+
		"[train]\npreset = \"general\"\nenv = \"forager\"\nmode = \"sync\"\n", buildC(t, "forager/forager.c", false)))
	w.reaches(2.95, 200_000, "forager.toml")
}

// Environments with several agents pass every check in every language, and write the same bits: who acts, masks, rewards of agents
// and flags of all.
func TestGuests_PlayWithSeveralAgents(t *testing.T) {
	r := newRuntime(t)
	hashes := map[string]uint64{}
	files := map[string]string{"C": "connectfour@1", "Go": buildGo(t, "connectfour"), "Rust": buildRust(t, "connectfour/rust", "connectfour")}
	maps.Copy(files, testkit.Guests(t, "connectfour", t.TempDir()))
	for language, file := range files {
		p, err := r.Load(t.Context(), file, plugins.Builtins()[file], env.Source{Name: "connectfour"})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if spec := p.Spec(); spec.Agents() != 2 || spec.Flags&hostabi.SpecDynamicAgents == 0 {
			t.Errorf("%s describes %+v", language, spec)
		}
		for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 300, Seed: 1}) {
			if got.Verdict != envcheck.OK {
				t.Errorf("%s: %+v", language, got)
			}
		}
		hashes[language] = agentsHash(t, p)
	}
	for language, hash := range hashes {
		if hash != hashes["C"] {
			t.Errorf("%s writes %x, C %x: want the same bits", language, hash, hashes["C"])
		}
	}
}

// An environment with a Tuple of actions, MultiBinary, Discrete with a start and Box, with masks, passes every check in every language, and
// writes the same bits.
func TestGuests_TakeSeveralActions(t *testing.T) {
	r := newRuntime(t)
	hashes := map[string]uint64{}
	files := map[string]string{"C": "tuple@1", "Go": buildGo(t, "tuple"), "Rust": buildRust(t, "tuple/rust", "tuple")}
	maps.Copy(files, testkit.Guests(t, "tuple", t.TempDir()))
	for language, file := range files {
		p, err := r.Load(t.Context(), file, plugins.Builtins()[file], env.Source{Name: "tuple"})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		spec := p.Spec()
		if got, want := spec.Spaces(hostabi.RoleAction), "lamps: MultiBinary[3], drive/gear: Discrete(3) from -1, drive/wheel: Box[1]"; got != want {
			t.Errorf("%s takes %s, want %s", language, got, want)
		}
		if got, want := spec.Spaces(hostabi.RoleActionMask), "lamps: Box[6] of u8, drive/gear: Box[3] of u8"; got != want {
			t.Errorf("%s has masks %s, want %s", language, got, want)
		}
		for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 300, Seed: 1}) {
			if got.Verdict != envcheck.OK {
				t.Errorf("%s: %+v", language, got)
			}
		}
		plugintest.TestEnv(t, p, plugintest.Options{Envs: 7, Seed: 3})
		hashes[language] = agentsHash(t, p)
	}
	for language, hash := range hashes {
		if hash != hashes["C"] {
			t.Errorf("%s writes %x, C %x: want the same bits", language, hash, hashes["C"])
		}
	}
}

// A Dict of observations, found by name, sines and cosines of rl_math.h, and pictures are the same in the languages of the table of guests.
func TestGuests_OfOneEnvironmentWriteTheSameBits(t *testing.T) {
	r := newRuntime(t)
	drawn := ""
	for _, name := range []string{"lander", "spaces"} {
		first, want, state := "", uint64(0), uint64(0)
		for guest, file := range testkit.Guests(t, name, t.TempDir()) {
			p := loadGuest(t, r, file, nil)
			for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 300, Seed: 1}) {
				if got.Verdict != envcheck.OK {
					t.Errorf("%s: %+v", guest, got)
				}
			}
			if name == "lander" {
				film := drawnSteps(t, p, guest)
				if drawn == "" {
					drawn = film
				}
				if film != drawn {
					t.Errorf("%s draws other pictures than others", guest)
				}
			}
			steps, states := agentsHashes(t, p)
			if first == "" {
				first, want = guest, steps
			}
			if steps != want {
				t.Errorf("%s writes %x, %s %x: want the same bits", guest, steps, first, want)
			}
			if strings.Contains(guest, "assemblyscript") {
				continue // its objects have no padding behind their last field
			}
			if state == 0 {
				state = states
			}
			if states != state {
				t.Errorf("%s saves %x, others %x: want the same bits", guest, states, state)
			}
		}
	}
}

// drawnSteps returns the pictures of 60 steps of an environment, which follow what happens, in one string. A text says how many steps were made.
func drawnSteps(t *testing.T, p env.Plugin, guest string) string {
	t.Helper()
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "drawn", Envs: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1, 2}); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Env.Spec().Render, (hostabi.Render{Modes: d.Env.Spec().Render.Modes, Width: 60, Height: 40, FPS: 30}); got != want || got.Modes&hostabi.RenderRGB == 0 {
		t.Fatalf("%s describes its pictures as %+v", guest, got)
	}
	seen := map[string]bool{}
	var film strings.Builder
	for step := range 60 {
		d.Draw(func(index int) uint64 { return env.Seed(uint64(step), index) })
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		picture, err := d.Env.(env.Renderer).Render(1, hostabi.RenderRGB, 0, nil)
		if err != nil {
			t.Fatalf("%s: %v", guest, err)
		}
		seen[string(picture)] = true
		film.Write(picture)
	}
	if len(seen) < 10 {
		t.Errorf("%s: 60 steps give %d pictures", guest, len(seen))
	}
	if d.Env.Spec().Render.Modes&hostabi.RenderText != 0 {
		if text, err := d.Env.(env.Renderer).Render(1, hostabi.RenderText, 0, nil); err != nil || !strings.HasSuffix(string(text), " of 300") {
			t.Errorf("%s shows %q: %v", guest, text, err)
		}
	}
	return film.String()
}

// agentsHash is one hash of both agentsHashes.
func agentsHash(t *testing.T, p env.Plugin) uint64 {
	t.Helper()
	steps, states := agentsHashes(t, p)
	return steps ^ bits.RotateLeft64(states, 1)
}

// agentsHashes are hashes of everything that agents observe and get in 1,000 steps of random legal actions, and of the states saved then.
func agentsHashes(t *testing.T, p env.Plugin) (steps, states uint64) {
	t.Helper()
	b := newGoldenBatch(t, p, 13)
	b.start(t, func(index int) uint64 { return env.Seed(5, index) })
	h, ended := fnv.New64a(), trajectory.Ended(0)
	for step := range 1000 {
		b.Draw(func(row int) uint64 { return env.Seed(uint64(step), row) })
		over, err := b.Step()
		if err != nil {
			t.Fatal(err)
		}
		ended |= over
		for _, flag := range []trajectory.Flags{trajectory.Observed, trajectory.Final} {
			for _, m := range b.Observed(flag) {
				h.Write(m.Data)
			}
		}
		for _, c := range []trajectory.Column{trajectory.Reward, trajectory.Terminated, trajectory.Truncated} {
			h.Write(b.Result(c).Data)
		}
	}
	if ended == 0 {
		t.Error("no episode has ended")
	}
	kept := fnv.New64a()
	for index := range b.envs {
		saved, err := b.SaveEnv(index, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept.Write(saved)
	}
	return h.Sum64(), kept.Sum64()
}
