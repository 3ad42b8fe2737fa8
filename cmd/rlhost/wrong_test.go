package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"

	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// errBehind is returned where the installed compiler cannot put the stack after the data.
var errBehind = errors.New("needs clang with lld: Zig always puts the stack first")

// compileC compiles a source of testdata with clang or, where it is missing, Zig. behind asks for a stack after
// the data, which older linkers do unasked.
func compileC(source, out string, behind bool, flags ...string) error {
	command := []string{"../../.venv/bin/python", "-m", "ziglang", "cc", "-target", "wasm32-freestanding"}
	zig := true
	for _, name := range []string{"clang-19", "clang"} {
		if path, err := exec.LookPath(name); zig && err == nil {
			command, zig = []string{path, "--target=wasm32"}, false
		}
	}
	if zig && behind {
		return errBehind
	}
	orders := []string{"--stack-first"}
	if behind {
		orders = []string{"--no-stack-first", "--growable-table"} // the second changes nothing here
	}
	command = append(command, "-std=c11", "-O1", "-nostdlib", "-mbulk-memory", "-I", "../../sdk/c", "-o", out, "testdata/"+source)
	command = append(command, flags...)
	var err error
	for _, order := range orders {
		line := append(slices.Clone(command), "-Wl,--no-entry,-z,stack-size=65536,"+order)
		var text []byte
		if text, err = exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil {
			return nil
		}
		err = fmt.Errorf("%v: %w\n%s", line, err, text)
	}
	return err
}

// buildC compiles into a folder of the test, or skips it.
func buildC(t *testing.T, source string, behind bool, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	switch err := compileC(source, out, behind, flags...); {
	case errors.Is(err, errBehind):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return out
}

// buildGo builds a guest in Go from a folder of testdata, as its author would.
func buildGo(t *testing.T, folder string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
	build.Dir = filepath.Join("testdata", folder)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

// buildInScript is the command buildc SOURCE MODULE FLAGS… of scripts.
func buildInScript(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(compileC("wrong/"+args[0], ts.MkAbs(args[1]), false, args[2:]...))
}

// poisoned reports whether this build writes over the blocks that are released.
func poisoned(t *testing.T) bool {
	t.Helper()
	a, err := arena.New(arena.Config{ID: 1, Name: "poisoned", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	first := byte(0)
	for range 2 {
		loan, err := a.Loan()
		if err != nil {
			t.Fatal(err)
		}
		first = loan.Bytes()[0]
		if err := loan.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	return first != 0
}

// TestCheck_FindsProgramsThatOnlyLookRight builds each of them, all of which run without a fault, and the right one.
func TestCheck_FindsProgramsThatOnlyLookRight(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for _, c := range []struct {
		source, wrong string
		behind        bool // the stack is after the data
		id            string
		verdict       envcheck.Verdict
		detail        string
	}{
		{"wrong.c", "NOTHING", false, "M02", envcheck.OK, "room around each tensor"},
		{"wrong.c", "NOTHING", true, "M03", envcheck.Warning, "the stack is after the module's data"},
		{"wrong.c", "OVERRUN", false, "M02", envcheck.Failed, "rl_reset writes after the last environment's obs f32[2]: 152 bytes"},
		{"wrong.c", "BEFORE", false, "M02", envcheck.Failed, "rl_reset writes before the first environment's obs f32[2]: 4 bytes"},
		{"wrong.c", "UNWRITTEN", false, "M01", envcheck.Failed, "env 0: rl_reset does not write element 1 of obs f32[2]"},
		{"wrong.c", "NULLED", false, "M02", envcheck.Failed, "rl_step at step 9: writes 4 bytes up to address 0x7, where nothing lies: that is a null pointer"},
		{"wrong.c", "NULLED", true, "M02", envcheck.Failed, "writes 4 bytes up to address 0x7, where nothing lies: that is a null pointer"},
		{"wrong.c", "BIG_LOCAL", true, "M03", envcheck.Failed, "path_to has local variables of 100000 bytes, the whole stack has 6"},
		{"wrong.c", "BIG_LOCAL_OVER_ZEROS", true, "M03", envcheck.Failed, "path_to has local variables of 100000 bytes, and the stack 65536, unless the linker has a larger one"},
		{"wrong.c", "BIG_LOCAL", false, "M03", envcheck.Failed, "path_to has local variables of 100000 bytes, the whole stack has 65536"},
		{"wrong.c", "BIG_LOCAL", false, "A01", envcheck.Failed, "out of bounds memory access in path_to, called by "},
		{"wrong.c", "POINTER", false, "D06", envcheck.Failed, "saved at step 150 and loaded into another instance, env 0 differs from step 151 on"},
		{"wrong.c", "UNSAVED", false, "D06", envcheck.OK, "it does not save environments one by one"},
		{"wrong.c", "SAVED", false, "D06", envcheck.OK, "saved at step 150 and after an end, loaded into a larger batch, bit-equal"},
		{"wrong.c", "TELLS", false, "A02", envcheck.Failed, `rl_step at step 3 says "no such square" and returns no error`},
		{"wrong.c", "LIMIT", false, "T02", envcheck.Failed, "the description has episode_limit 10, and an episode goes on for 40 env steps"},
		{"bare.c", "NOTHING", false, "M01", envcheck.OK, "the last observation too"},
		{"bare.c", "NO_FINAL", false, "M01", envcheck.Failed, "env 0: rl_step at step 7 does not write element 0 of final_obs f32[3]"},
		{"bare.c", "STRIDES", false, "D07", envcheck.Failed, "laid out [elem][env], env "},
		{"bare.c", "FINAL_NAN", false, "A01", envcheck.Failed, "final_obs element 1, of the last observation of an episode, is NaN"},
		{"bare.c", "ENDED_MASK", false, "E03", envcheck.Failed, "env 0 step 7 ends an episode under next_step, and element 0 of the mask after it is 0"},
		{"bare.c", "RANGE_MOVES", false, "D09", envcheck.Failed, "stepped in parts, env "},
		{"bare.c", "BIND_BEGINS", false, "D10", envcheck.Failed, "in another block from each step to the next, env 0 differs from step "},
		{"bare.c", "READS_BACK", false, "D11", envcheck.Failed, "other values lie over what it wrote before each step: step 1: env 0 after rl_step: environment wrote"},
		{"bare.c", "DRAW_MOVES", false, "R01", envcheck.Failed, "with a picture after each step, env "},
		{"bare.c", "DRAW_SHORT", false, "R01", envcheck.Failed, "a picture of 23 bytes, want 24 for 4 × 2 pixels"},
		{"bare.c", "KEYS_OUTSIDE", false, "R02", envcheck.Failed, "is 2, want 0 to 1"},
		{"bare.c", "SAVE_HEAD", false, "D06", envcheck.Failed, "a state that says 20 bytes follow its head, of which there are 12"},
		{"bare.c", "ANY_STATE", false, "D08", envcheck.Failed, "a state of version 4 is taken by an environment of version 3"},
	} {
		if unwritten := c.id == "M01" || c.id == "D07"; unwritten && c.verdict == envcheck.Failed && poisoned(t) {
			continue // elements not written are NaN then, and found by the first check of values
		}
		name := c.wrong
		if c.behind {
			name += " with the stack behind"
		}
		t.Run(c.source+" "+name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"-DWRONG=" + c.wrong}
			if c.source == "bare.c" {
				flags = append(flags, "-Wno-unused-parameter")
			}
			p := loadGuest(t, r, buildC(t, "wrong/"+c.source, c.behind, flags...), nil)
			found := false
			for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 300, Seed: 1}) {
				found = found || got.ID == c.id
				if got.ID == c.id && (got.Verdict != c.verdict || !strings.Contains(got.Detail, c.detail)) {
					t.Errorf("%s is %q, %q; want %q with %q", got.ID, got.Verdict, got.Detail, c.verdict, c.detail)
				}
				if got.Verdict != envcheck.OK && c.verdict == envcheck.OK {
					t.Errorf("%+v", got)
				}
			}
			if !found {
				t.Errorf("%s was not reached", c.id)
			}
		})
	}
}

// TestLoad_NamesErrorsInADescription loads modules whose description is not accepted.
func TestLoad_NamesErrorsInADescription(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	const correct = "correct the fields of RL_ENV, or what rl_describe writes without the SDK, or the arguments"
	for wrong, want := range map[string]table.Error{
		"FLAGS": {Code: module.CodeDescription, Reason: "describes itself wrongly: tensor 2: reward: flags are 0x4: the axis of time of this role is RL_TENSOR_AT_T (0x2)", Help: correct},
		"STATE": {Code: module.CodeFuture, Reason: "needs a later host than this rlhost, which speaks ABI 1.1: it needs feature 4",
			Help: "update rlhost, or build the guest for ABI 1.1"},
	} {
		_, err := r.Load(t.Context(), buildC(t, "wrong/bare.c", false, "-DWRONG="+wrong), nil, env.Source{})
		var got *table.Error
		if !errors.As(err, &got) || got.Code != want.Code || got.Reason != want.Reason || got.Help != want.Help {
			t.Errorf("%s: %v, want %s; %s", wrong, err, want.Reason, want.Help)
		}
	}
}

// TestLoad_NamesAStateThatIsHalfSaved loads a module whose author saves states and does not load them.
func TestLoad_NamesAStateThatIsHalfSaved(t *testing.T) {
	t.Parallel()
	_, err := newRuntime(t).Load(t.Context(), buildC(t, "wrong/wrong.c", false, "-DWRONG=HALF"), nil, env.Source{})
	if want := "save, load and save_bytes belong together"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestCheck_SaysWhereGoPanicked builds a guest in Go, as its author would.
func TestCheck_SaysWhereGoPanicked(t *testing.T) {
	t.Parallel()
	out := buildGo(t, "wrong/panics")
	r := newRuntime(t)
	want := "check env 0: status in rl_step at step 5: internal error: \"panic: runtime error: index out of range [5] with length 5 " +
		"in main.(*walk).at (main.go:30), called by main.(*walk).Step (main.go:25)\" ("
	results := envcheck.Run(t.Context(), loadGuest(t, r, out, nil), envcheck.Options{Steps: 10})
	if got := results[len(results)-1]; got.ID != "A01" || !strings.HasPrefix(got.Detail, want) {
		t.Errorf("%s says %q, want %q", got.ID, got.Detail, want)
	}
}

// TestCheck_ShowsSourceLines traps in a guest that was built with -g: metering has moved all its instructions.
func TestCheck_ShowsSourceLines(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/wrong/wrong.c")
	if err != nil {
		t.Fatal(err)
	}
	lineOf := func(code string) int {
		before, _, ok := strings.Cut(string(source), code)
		if !ok {
			t.Fatalf("wrong.c has no %q", code)
		}
		return 1 + strings.Count(before, "\n")
	}
	r := newRuntime(t)
	p := loadGuest(t, r, buildC(t, "wrong/wrong.c", false, "-g", "-DWRONG=BIG_LOCAL"), nil)
	want := fmt.Sprintf("out of bounds memory access in path_to (wrong.c:%d), called by rl_made_step (wrong.c:%d), rl_advance (rl_batch.h:",
		lineOf("path[i] = i;"), lineOf("w->cell += path_to(w->cell);"))
	results := envcheck.Run(t.Context(), p, envcheck.Options{Steps: 10})
	if got := results[len(results)-1]; got.ID != "A01" || !strings.Contains(got.Detail, want) {
		t.Errorf("%s says %q, want %q", got.ID, got.Detail, want)
	}
}

// TestLoad_OptionalLogNeedsNoGrant loads a module that logs where it may: it runs without the grant, and is heard with it.
func TestLoad_OptionalLogNeedsNoGrant(t *testing.T) {
	t.Parallel()
	for _, grants := range [][]string{nil, {module.GrantLog}} {
		var said bytes.Buffer
		r, err := wasm.New(wasm.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Load(t.Context(), buildC(t, "trylog.c", false), nil, env.Source{Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "quiet", Envs: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Reset(nil, []uint64{1, 2}), d.Close(), p.Close(), r.Close()); err != nil {
			t.Fatal(err)
		}
		if heard := strings.Contains(said.String(), "an episode begins"); heard != (grants != nil) {
			t.Errorf("with the grants %v it is heard: %v\n%s", grants, heard, said.String())
		}
	}
}
