package plugins_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// foragers drives one language's module.
func foragers(t *testing.T, r *wasm.Runtime, module string) *env.Driver {
	t.Helper()
	p, err := r.Load(t.Context(), module, nil, env.Source{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 3, Autoreset: hostabi.SameStep}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.Reset(nil, []uint64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	return d
}

// wander makes some steps and returns all that they wrote. Observations of a life that has ended count where it has.
func wander(t *testing.T, d *env.Driver, from, steps int) (all []byte, ends, rebirths int) {
	t.Helper()
	for step := from; step < from+steps; step++ {
		d.Draw(func(row int) uint64 { return env.Seed(uint64(step), row) })
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		obs, last, terminated, truncated := d.Obs(), d.FinalObs(), d.Terminated(), d.Truncated()
		for i, reward := range d.Reward() {
			all = fmt.Appendln(all, reward, terminated[i], truncated[i])
			for e := range obs.Elems {
				all = fmt.Append(all, " ", obs.Value(i, e))
			}
			if terminated[i]|truncated[i] == 0 {
				continue
			}
			ends++
			if obs.Value(i, 2) == 12 && last.Value(i, 2) != 12 {
				rebirths++ // with new energy, in the row after the end
			}
			for e := range last.Elems {
				all = fmt.Append(all, " last ", last.Value(i, e))
			}
		}
	}
	return all, ends, rebirths
}

// Agents that die and are back at once are the same in all languages, and a world that one of them has saved continues in another.
func TestForagers_AreTheSameInAllLanguages(t *testing.T) {
	modules := testkit.Guests(t, "foragers", t.TempDir())
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var first, second []byte
	var saved [][]byte
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		d := foragers(t, r, modules[name])
		one, ends, rebirths := wander(t, d, 0, 200)
		if ends < 100 || rebirths < 100 {
			t.Errorf("%s: %d ends and %d rebirths in 200 steps", name, ends, rebirths)
		}
		own := make([][]byte, 3)
		for i := range own {
			if own[i], err = d.Env.(env.Stater).SaveEnv(i, nil); err != nil {
				t.Fatal(err)
			}
		}
		if saved == nil {
			saved = own
		}
		if err := d.Reset(nil, []uint64{7, 8, 9}); err != nil {
			t.Fatal(err)
		}
		for i := range saved { // of the language before
			if err := d.Env.(env.Stater).LoadEnv(i, saved[i]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		saved = own
		two, _, _ := wander(t, d, 200, 200)
		if first == nil {
			first, second = one, two
		}
		if !bytes.Equal(one, first) || !bytes.Equal(two, second) {
			t.Errorf("%s differs", name)
		}
	}
	if len(modules) < 3 {
		t.Skipf("%d languages can be built here", len(modules))
	}
}

// An agent that ends without its last observation is its author's mistake, and the SDK says what to do. One that sets the flags of all
// agents ends the environment's own episode.
func TestForagers_ALastObservationThatIsNotGivenIsNamed(t *testing.T) {
	cc := testkit.Needs(t, "clang-19", "clang")
	testkit.Reads(t, "foragers-c/foragers.c", "../../sdk/c/*.h")
	source, err := os.ReadFile("foragers-c/foragers.c")
	if err != nil {
		t.Fatal(err)
	}
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, c := range map[string]struct{ was, is, want string }{
		"not given": {"rl_last(k, obs);", "if (k) rl_last(k, obs);", "an agent's episode has ended without its last observation: give it to rl_last, then put the agent back"},
		"no such":   {"rl_last(k, obs);", "rl_last(k + 4, obs);", "rl_last: it is for a step with .respawn"},
		"apart":     {".respawn = true", ".respawn = true, .apart = true", "apart and respawn exclude each other"},
		"alone":     {"#define FORAGERS 4", "#define FORAGERS 1", "respawn is for several agents"},
		"all at once": {"    for (int k = 0; k < FORAGERS; k++) {\n        if (!out", "    bool over = rl_below(rng, 8) == 0;\n    for (int k = 0; k < FORAGERS; k++) out[k].truncated = over, out[k].terminated = false;\n" +
			"    for (int k = 0; k < 0; k++) {\n        if (!out", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := strings.Replace(string(source), c.was, c.is, 1)
			if text == string(source) {
				t.Fatalf("%q is not in the source", c.was)
			}
			if err := os.WriteFile(dir+"/foragers.c", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			build := exec.Command(cc, "--target=wasm32", "-std=c11", "-O1", "-nostdlib", "-Wl,--no-entry,--stack-first", "-I", "../../sdk/c", dir+"/foragers.c", "-o", dir+"/foragers.wasm")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			err := playForagers(t, r, dir+"/foragers.wasm")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// playForagers makes 300 steps, and checks that all agents begin again where all have ended.
func playForagers(t *testing.T, r *wasm.Runtime, module string) error {
	p, err := r.Load(t.Context(), module, nil, env.Source{})
	if err != nil {
		return err
	}
	defer p.Close()
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 2, Autoreset: hostabi.SameStep}})
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1, 2}); err != nil {
		return err
	}
	for step := range 300 {
		d.Draw(func(row int) uint64 { return env.Seed(uint64(step), row) })
		if _, err := d.Step(); err != nil {
			return err
		}
		tr, row := d.Stepped()
		for i, cut := range tr.Row(trajectory.Truncated, row).Data {
			if energy := d.Obs().Value(i, 2); cut != 0 && energy != 12 {
				t.Errorf("step %d: agent %d begins with an energy of %g", step, i, energy)
			}
		}
	}
	return nil
}

// otherForagers builds foragers.c with other lines.
func otherForagers(t *testing.T, other ...string) (module string) {
	t.Helper()
	cc := testkit.Needs(t, "clang-19", "clang")
	testkit.Reads(t, "foragers-c/foragers.c", "../../sdk/c/*.h")
	source, err := os.ReadFile("foragers-c/foragers.c")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/foragers.c", []byte(strings.NewReplacer(other...).Replace(string(source))), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(cc, "--target=wasm32", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-nostdlib", "-Wl,--no-entry,--stack-first", "-I", "../../sdk/c", dir+"/foragers.c", "-o", dir+"/foragers.wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir + "/foragers.wasm"
}

// The check and the checks of a run name the agent whose row is wrong by its number, and by its own name where it has one.
func TestForagers_MessagesHaveTheNameOfTheAgent(t *testing.T) {
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	names, skipped := []string{".respawn = true", `.respawn = true, .agent_names = "ann\nbob\ncat\ndan"`},
		[]string{"    obs[SEEN * k + 1] =", "    if (k != 2) obs[SEEN * k + 1] ="}
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{skipped, "env 0 agent 2: rl_reset does not write element 1 of obs f32[3]"},
		{append(names, skipped...), "env 0 agent 2 (cat): rl_reset does not write element 1 of obs f32[3]"},
	} {
		p, err := r.Load(t.Context(), otherForagers(t, c.lines...), nil, env.Source{})
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 100, Seed: 1}) {
			if got.ID == "M01" && got.Verdict == envcheck.Failed {
				said = got.Detail
			}
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("M01 says %q, want %q", said, c.want)
		}
		p.Close()
	}
	lines := append(names, "(float)(env->food - env->at[k])", "k == 3 ? 1 / (float)(env->age[k] != 1) : (float)(env->food - env->at[k])")
	d := foragers(t, r, otherForagers(t, lines...))
	d.Draw(func(row int) uint64 { return env.Seed(1, row) })
	if _, err := d.Step(); err == nil || !strings.Contains(err.Error(), "agent 3 (dan): ") {
		t.Errorf("an infinite observation of agent 3: %v", err)
	}
}

// buildChanged builds the module of a row of the table from a text in the place of its source, in a folder of its own, where a
// compiler of its language is here.
func buildChanged(t *testing.T, module, text string) string {
	t.Helper()
	rows := plugins.Guests()
	g := rows[slices.IndexFunc(rows, func(g plugins.Guest) bool { return g.Module == module })]
	if _, err := g.SourceHash(); err != nil { // so that a cached result depends on them
		t.Fatal(err)
	}
	dir := t.TempDir()
	names := strings.NewReplacer("{root}", root(t), "{env}", g.Env, "{module}", filepath.Join(dir, "made.wasm"))
	if err := os.WriteFile(filepath.Join(dir, g.Env+extensions[g.Language.Name]), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Language.Compilers {
		var line []string
		for _, word := range slices.Concat(c.Build, g.Flags) {
			line = append(line, names.Replace(word))
		}
		if _, err := exec.LookPath(line[0]); err != nil {
			continue
		}
		build := exec.Command(line[0], line[1:]...)
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return filepath.Join(dir, "made.wasm")
	}
	t.Skipf("no compiler of %s is here", g.Language.Name)
	return ""
}

// extensions has the ends of the names of sources by language.
var extensions = map[string]string{"C": ".c", "Zig": ".zig", "AssemblyScript": ".ts"}

// An environment tells numbers of the episode that begins, names its agents and the keys of a person, and says how long a step takes.
func TestForagers_TellInfosAtResetNamesAndTime(t *testing.T) {
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for module, changes := range map[string][]string{
		"foragers-c/foragers.wasm": {
			"    for (int k = 0; k < FORAGERS; k++) born(env, rng, k);\n", "    for (int k = 0; k < FORAGERS; k++) born(env, rng, k);\n    rl_reset_info(1, (float)env->food);\n",
			"RL_ENV(", "static const char *const told[] = {\"never\", \"food\"};\n\nRL_ENV(",
			".respawn = true", `.respawn = true, .agent_names = "ann\nbob\ncat\ndan", .dt = 0.5f, RL_RESET_INFOS(told), .keys = "left=0\nright=1"`},
		"games-zig/foragers.wasm": {
			"        for (0..agents) |k| env.born(rng, k);\n", "        for (0..agents) |k| env.born(rng, k);\n        rl.tell(1, @floatFromInt(env.food));\n",
			"pub const respawn = true;", `pub const respawn = true; pub const agent_names = "ann\nbob\ncat\ndan"; pub const dt = 0.5;` +
				` pub const keys = "left=0\nright=1"; pub const reset_infos = .{ "never", "food" };`},
		"games-assemblyscript/foragers.wasm": {
			"this.food = rng.below(CELLS);\n    for", "this.food = rng.below(CELLS);\n    view.tell(1, <f32>this.food);\n    for",
			"spec.respawn = true;", "spec.respawn = true;\nspec.agentNames = \"ann\\nbob\\ncat\\ndan\";\nspec.dt = 0.5;\nspec.keys = \"left=0\\nright=1\";\nspec.resetInfo(\"never\").resetInfo(\"food\");"},
	} {
		t.Run(filepath.Dir(module), func(t *testing.T) {
			d := foragers(t, r, buildChanged(t, module, changed(t, module, changes...)))
			spec := d.Env.Spec()
			if spec.DT != 0.5 || spec.Groups[0].AgentName(2) != "cat" || spec.Keys != "left=0\nright=1" {
				t.Errorf("a step of %g s, agents %q, keys %q", spec.DT, spec.Groups[0].AgentNames, spec.Keys)
			}
			tr, row := d.Acting()
			for env := range 3 {
				never, food := tr.Row(trajectory.ResetInfo, row).Value(4*env, 0), tr.Row(trajectory.ResetInfo.At(1), row).Value(4*env, 0)
				if obs := d.Obs(); never != 0 || food != obs.Value(4*env, 0)+obs.Value(4*env, 1) {
					t.Errorf("environment %d: infos at reset %g and %g, the food is in cell %g", env, never, food, obs.Value(4*env, 0)+obs.Value(4*env, 1))
				}
			}
		})
	}
}

// changed returns the source of a module with texts in the place of others, each of which must be there.
func changed(t *testing.T, module string, changes ...string) string {
	t.Helper()
	rows := plugins.Guests()
	g := rows[slices.IndexFunc(rows, func(g plugins.Guest) bool { return g.Module == module })]
	source, err := os.ReadFile(strings.TrimSuffix(module, ".wasm") + extensions[g.Language.Name])
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for pair := range slices.Chunk(changes, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("%q is not in the source of %s", pair[0], module)
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	return text
}

// In languages on the object and in AssemblyScript, too, a missing last observation is named, and so is the line of what stops the
// environment.
func TestForagers_MistakesAreNamedInOtherLanguages(t *testing.T) {
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const missing = "an agent's episode has ended without its last observation: give it to"
	for name, c := range map[string]struct{ module, was, is, want string }{
		"Zig, not given":            {"games-zig/foragers.wasm", "rl.last(@intCast(k), seen);", "if (k != 0) rl.last(@intCast(k), seen);", missing + " rl_last"},
		"Zig, no such":              {"games-zig/foragers.wasm", "rl.last(@intCast(k), seen);", "rl.last(@intCast(k + 4), seen);", "for agents that there are"},
		"AssemblyScript, not given": {"games-assemblyscript/foragers.wasm", "view.last(k);", "if (k) view.last(k);", missing + " view.last"},
		"AssemblyScript, no such":   {"games-assemblyscript/foragers.wasm", "view.last(k);", "view.last(k + 4);", "view.last: it is for a step with spec.respawn"},
		"AssemblyScript, apart":     {"games-assemblyscript/foragers.wasm", "spec.respawn = true;", "spec.respawn = true; spec.apart = true;", "apart and respawn exclude each other"},
		"AssemblyScript, alone":     {"games-assemblyscript/foragers.wasm", "spec.agents = FORAGERS;", "", "respawn is for several agents"},
		"AssemblyScript, thrown": {"games-assemblyscript/foragers.wasm", "      view.last(k);\n", `      if (k == 2) throw new Error("the third is tired");` + "\n      view.last(k);\n",
			"foragers.ts:65:19: the third is tired"},
	} {
		t.Run(name, func(t *testing.T) {
			err := playForagers(t, r, buildChanged(t, c.module, changed(t, c.module, c.was, c.is)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
