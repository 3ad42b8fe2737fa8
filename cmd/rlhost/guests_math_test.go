package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/sdk"
)

const (
	guestSources = "../../examples/plugins/"
	zig          = "../../.venv/bin/python -m ziglang cc"
)

// compilers must make programs that compute the same bits; all but native are guests.
var compilers = map[string]string{
	"cc, native":         "cc -O2 -lm",
	"clang, native":      "clang-19 -O3 -lm",
	"zig, native":        zig + " -O1 -lm",
	"clang, guest":       "clang-19 --target=wasm32 -O3 -msimd128 -mbulk-memory -nostdlib -Wl,--no-entry,--stack-first",
	"clang -O0, guest":   "clang-19 --target=wasm32 -O0 -nostdlib -Wl,--no-entry,--stack-first",
	"zig, guest":         zig + " -target wasm32-freestanding -O2 -msimd128 -mbulk-memory -nostdlib -Wl,--no-entry",
	"zig, guest of WASI": zig + " -target wasm32-wasi -mexec-model=reactor -O3",
}

// compile builds a C source with one of the compilers; ok is false where that is missing.
func compile(t *testing.T, compiler, source string) (program string, ok bool) {
	t.Helper()
	headers, err := filepath.Glob("../../sdk/c/*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(headers, source) { // so that a cached result of the test depends on them
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(t.TempDir(), "program.wasm")
	line := strings.Fields(compilers[compiler])
	if _, err := exec.LookPath(line[0]); err != nil {
		t.Logf("%s is not here", compiler)
		return "", false
	}
	command := exec.Command(line[0], append(line[1:], source, "-std=c11", "-ffp-contract=off", "-I", "../../sdk/c", "-o", program, "-lm")...)
	if strings.Contains(compiler, "guest") {
		command.Args = command.Args[:len(command.Args)-1]
	}
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	return program, true
}

// stepping is how long a program steps itself, and its arguments.
type stepping struct {
	envs, steps, seed int
	args              map[string]string
}

// natively returns the trace that a native build of an environment prints.
func (p stepping) natively(t *testing.T, program string) string {
	t.Helper()
	args := []string{fmt.Sprintf("envs=%d", p.envs), fmt.Sprintf("steps=%d", p.steps), fmt.Sprintf("seed=%d", p.seed), "trace=yes"}
	for key, value := range p.args {
		args = append(args, key+"="+value)
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	_, trace, _ := strings.Cut(strings.TrimSpace(string(out)), ", trace ")
	return trace
}

// hosted steps a guest in the host as the native program steps itself, and returns the same trace.
func (p stepping) hosted(t *testing.T, r *wasm.Runtime, module string) string {
	t.Helper()
	plugin := loadGuest(t, r, module, p.args)
	b := newGoldenBatch(t, plugin, p.envs)
	seeds := make([]uint64, p.envs)
	for i := range seeds {
		seeds[i] = uint64(p.seed + i)
	}
	if err := b.Reset(nil, seeds); err != nil {
		t.Fatal(err)
	}
	spec := plugin.Spec()
	rng, hash := sdk.NewRand(uint64(p.seed)), fnv.New64a()
	for range p.steps {
		for env := range p.envs {
			if n := spec.Actions(); n > 0 {
				b.act(env, float32(rng.Below(uint32(n))))
			} else {
				space, _ := spec.Tensor(hostabi.RoleAction)
				b.act(env, rng.Uniform(space.Bounds(0)))
			}
		}
		if _, err := b.Step(); err != nil {
			t.Fatal(err)
		}
		obs := b.Obs()
		for env := range p.envs {
			for k := range obs.Elems {
				hash.Write(obs.Data[env*obs.StrideRow+k*obs.StrideElem:][:4])
			}
		}
		if err := binary.Write(hash, binary.LittleEndian, b.Reward()); err != nil {
			t.Fatal(err)
		}
		hash.Write(b.Terminated())
		hash.Write(b.Truncated())
	}
	return fmt.Sprintf("%016x", hash.Sum64())
}

func newRuntime(t *testing.T) *wasm.Runtime {
	t.Helper()
	r, err := wasm.New(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestMath_HasTheSameBitsFromEveryCompiler evaluates each function of rl_math.h for 179,200 pairs of arguments, in native programs and
// in guests, and does the same with environments that are made of it.
func TestMath_HasTheSameBitsFromEveryCompiler(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	plays := map[string][]stepping{
		"acrobot-c/acrobot.c":                             {{envs: 5, steps: 1200, seed: 3}},
		"mountaincar-c/mountaincar.c":                     {{envs: 5, steps: 1200, seed: 3}},
		"mountaincarcontinuous-c/mountaincarcontinuous.c": {{envs: 5, steps: 1200, seed: 3}},
		"pendulum-c/pendulum.c":                           {{envs: 5, steps: 1200, seed: 3}},
	}
	for function := range 18 {
		plays["testdata/math.c"] = append(plays["testdata/math.c"], stepping{7, 400, 3, map[string]string{"function": strconv.Itoa(function)}})
	}
	for source, plays := range plays {
		t.Run(filepath.Base(source), func(t *testing.T) {
			want, first := make([]string, len(plays)), ""
			for _, compiler := range slices.Sorted(maps.Keys(compilers)) {
				program, ok := compile(t, compiler, guestSources+source)
				if !ok {
					continue
				}
				for i, p := range plays {
					got := ""
					if strings.Contains(compiler, "guest") {
						got = p.hosted(t, r, program)
					} else {
						got = p.natively(t, program)
					}
					if want[i] == "" {
						want[i], first = got, compiler
					}
					if got != want[i] {
						t.Errorf("%v: trace %s with %s, %s with %s", p.args, got, compiler, want[i], first)
					}
				}
			}
		})
	}
}

// TestMath_HasTheSameBitsInOtherLanguages evaluates the functions of the SDKs for Go and Rust as the test above does.
func TestMath_HasTheSameBitsInOtherLanguages(t *testing.T) {
	t.Parallel()
	program, ok := compile(t, "clang, guest", guestSources+"testdata/math.c")
	if !ok {
		program, ok = compile(t, "zig, guest", guestSources+"testdata/math.c")
	}
	if !ok {
		t.Skip("no C compiler is here")
	}
	r := newRuntime(t)
	modules := map[string]string{"Go": buildGo(t, "math"), "Rust": buildRust(t, "math/rust", "math")}
	for function := range 17 {
		p := stepping{7, 400, 3, map[string]string{"function": strconv.Itoa(function)}}
		want := p.hosted(t, r, program)
		for language, module := range modules {
			if got := p.hosted(t, r, module); got != want {
				t.Errorf("function %d of math.c: trace %s in %s, %s in C", function, got, language, want)
			}
		}
	}
}

// The same of the mathematics in AssemblyScript, which no compiler makes of the header.
func TestLanguages_AssemblyScriptHasTheMathematicsOfC(t *testing.T) {
	t.Parallel()
	node := testkit.Needs(t, "../../.cache/languages/node_modules/.bin/asc")
	testkit.Reads(t, "../../sdk/assemblyscript/*.ts", guestSources+"testdata/math.ts")
	own, ok := compile(t, "clang, guest", guestSources+"testdata/math.c")
	if !ok {
		t.Skip("clang is not here")
	}
	module := filepath.Join(t.TempDir(), "math.wasm")
	line := exec.Command(node, guestSources+"testdata/math.ts", "-o", module, "--path", filepath.Dir(filepath.Dir(node)), "-O3", "--noAssert",
		"--runtime", "minimal", "--exportStart", "_initialize", "--use", "abort=~lib/rlhost-env/index/rlAbort")
	if out, err := line.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := newRuntime(t)
	for function := range 18 {
		p := stepping{7, 400, 3, map[string]string{"function": strconv.Itoa(function)}}
		if want, got := p.hosted(t, r, own), p.hosted(t, r, module); got != want {
			t.Errorf("function %d: trace %s, in C %s", function, got, want)
		}
	}
}

// TestMath_IsAsExactAsItsHeaderSays measures the functions against the C library's long double.
func TestMath_IsAsExactAsItsHeaderSays(t *testing.T) {
	t.Parallel()
	program, ok := compile(t, "cc, native", guestSources+"testdata/accuracy.c")
	if !ok {
		program, ok = compile(t, "zig, native", guestSources+"testdata/accuracy.c")
	}
	if !ok {
		t.Skip("no C compiler is here")
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]float64{"sin": 0.9, "cos": 0.9, "tan": 1.1, "asin": 2.2, "acos": 2.2, "atan": 0.9, "atan2": 1.4, "exp": 0.9, "ln": 0.9,
		"pow": 0.9, "sqrt": 0.5, "tanh": 2.6, "floor": 0, "ceil": 0, "trunc": 0, "round": 0, "fmod": 0}
	for line := range bytes.Lines(out) {
		var name, where string
		var worst float64
		if _, err := fmt.Sscanf(string(line), "%s %g at %s", &name, &worst, &where); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		limit, known := limits[name]
		if !known || worst > limit {
			t.Errorf("%s is %g units of the last place away at %s, want %g at most", name, worst, where, limit)
		}
		delete(limits, name)
	}
	for name := range limits {
		t.Errorf("%s was not measured", name)
	}
}
