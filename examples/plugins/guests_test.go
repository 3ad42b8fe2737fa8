package plugins_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
)

// runGuest runs a guest under Node, once for each list of arguments, and returns what each run prints: a hash,
// or a line that begins with error.
func runGuest(t *testing.T, module string, runs ...[]string) []string {
	t.Helper()
	testkit.Reads(t, "golden/run_guest.mjs", module)
	args := []string{"golden/run_guest.mjs", module}
	for i, run := range runs {
		if i > 0 {
			args = append(args, "+")
		}
		args = append(args, run...)
	}
	cmd := exec.Command(testkit.Needs(t, "node"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(runs) {
		t.Fatalf("%s: %v, %d lines for %d runs\n%s", module, err, len(lines), len(runs), stderr.String())
	}
	return lines
}

func TestCartPole_GuestsGiveTheBitsOfTheNativeCore(t *testing.T) {
	testkit.Needs(t, "node")
	for name, module := range testkit.Guests(t, "cartpole", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			var runs [][]string
			for _, v := range variants() {
				runs = append(runs, v.arguments())
			}
			got := runGuest(t, module, runs...)
			for i, v := range variants() {
				if want := referenceHash(v); got[i] != want {
					t.Errorf("%v: hash %s, want %s", v, got[i], want)
				}
			}
		})
	}
}

func TestCartPole_NativeCGivesTheBitsOfTheNativeCore(t *testing.T) {
	program := filepath.Join(t.TempDir(), "cartpole")
	compileNative(t, "cartpole-c/cartpole.c", program)
	out, err := exec.Command(program, "envs=7", "steps=400", "seed=3", "trace=yes").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := nativeTrace(7, 400, 3); !strings.Contains(string(out), "trace "+want) {
		t.Errorf("output %q, want trace %s", out, want)
	}
}

// A source in C or C++ plays alike as a program of this machine, under sanitizers, and as a module: with agents that act together, in turns
// and apart, in groups, with masks, with several actions.
func TestNative_ProgramsPlayAsTheirModules(t *testing.T) {
	node := testkit.Needs(t, "node")
	testkit.Reads(t, "golden/play_guest.mjs")
	for _, source := range []string{"chase-c/chase.c", "connectfour-c/connectfour.c", "snake-c/snake.c", "tag-c/tag.c", "sanity-c/tuple.c",
		"sanity-c/spaces.c", "taxi-c/taxi.c", "cartpole-cpp/cartpole.cpp", "courier-cpp/courier.cpp", "lunarlander-cpp/lunarlander.cpp", "nim-cpp/nim.cpp"} {
		name := strings.TrimSuffix(source, filepath.Ext(source))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "program")
			compileNative(t, source, program)
			arguments := []string{"envs=5", "steps=300", "seed=7"}
			testkit.Reads(t, name+".wasm")
			want, err := exec.Command(node, append([]string{"golden/play_guest.mjs", name + ".wasm"}, arguments...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			got, err := exec.Command(program, append(arguments, "trace=yes")...).CombinedOutput()
			if err != nil || !strings.Contains(string(got), "trace "+strings.TrimSpace(string(want))) {
				t.Errorf("the program: %v, %s; the module: trace %s", err, got, want)
			}
			quiet, err := exec.Command(program, arguments...).CombinedOutput()
			if err != nil || strings.Contains(string(quiet), "trace") || !strings.Contains(string(quiet), "1500 env steps") {
				t.Errorf("without trace=yes: %v, %s", err, quiet)
			}
		})
	}
}

func TestNative_DebuggersStopInTheAuthorsCode(t *testing.T) {
	gdb := testkit.Needs(t, "gdb")
	program := filepath.Join(t.TempDir(), "connectfour")
	compileNative(t, "connectfour-c/connectfour.c", program)
	cmd := exec.Command(gdb, "-nx", "-batch", "-ex", "break wins", "-ex", "run", "-ex", "print column", "-ex", "up", "-ex", "print *env", program)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0") // its leak check is a debugger itself
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "#1  step (") || !strings.Contains(string(out), "{stones = {") {
		t.Errorf("%v\n%s", err, out)
	}
}

// compileNative builds an environment in C or C++ with the machine's own compiler, with sanitizers where it has them.
func compileNative(t *testing.T, source, program string) {
	t.Helper()
	cc, standard := testkit.Needs(t, "cc", "gcc", "clang"), "-std=c11"
	if strings.HasSuffix(source, ".cpp") {
		cc, standard = testkit.Needs(t, "c++", "g++", "clang++"), "-std=c++20"
	}
	testkit.Reads(t, source, "../../sdk/c/*.h", "../../sdk/c/*.hpp")
	flags := append([]string{standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-I", "../../sdk/c"}, fetched(t, filepath.Dir(source))...)
	flags = append(flags, source, "-o", program, "-lm")
	sanitize := append([]string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}, flags...)
	if exec.Command(cc, sanitize...).Run() == nil {
		return
	}
	if out, err := exec.Command(cc, flags...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestCorridor_IsTheSameInAllLanguages(t *testing.T) {
	testkit.Needs(t, "node")
	runs := [][]string{
		{"save=no"},
		{"save=no", "layout=columns", "mode=next_step", "config=length=5"},
		{"config=len=3"},
		{"config=length=x"},
		{"config=length=1"},
	}
	want := []string{"", "",
		"error rl_create -5 unknown argument len",
		"error rl_create -5 argument length: want a whole number",
		"error rl_create -5 length must be 2 to 1000",
	}
	for name, module := range testkit.Guests(t, "corridor", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			got := runGuest(t, module, runs...)
			for i := range got {
				if want[i] == "" {
					want[i] = got[i] // the first language sets the hash for the others
				}
				if got[i] != want[i] {
					t.Errorf("%v: %q, want %q", runs[i], got[i], want[i])
				}
			}
		})
	}
}

func TestModules_AreMadeFromTheirSources(t *testing.T) {
	for _, g := range append(plugins.Guests(), plugins.Interpreter()) {
		if !g.Committed {
			continue
		}
		hash, err := g.SourceHash()
		if err != nil {
			t.Fatal(err)
		}
		if record := recordOf(t, g); !strings.HasSuffix(record, "\nsources "+hash+"\n") {
			t.Errorf("the record of %s says %q, its sources are %s: go run ./examples/plugins/build %s", g.Module, record, hash, g.Folder())
		}
	}
}

// recordOf returns the record next to a committed module.
func recordOf(t *testing.T, g plugins.Guest) string {
	t.Helper()
	path, err := g.RecordPath()
	if err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(record)
}

// Cargo names crates by their folder, and lays the code out by these names: a clone elsewhere gives other bytes. For
// Rust modules the record alone checks the sources, and the traces check the results.
func TestModules_AreWhatTheirCompilerMakes(t *testing.T) {
	for _, g := range append(plugins.Guests(), plugins.Interpreter()) {
		if !g.Committed || g.Language.Name == "Rust" {
			continue
		}
		t.Run(g.Name(), func(t *testing.T) {
			record, err := g.Record()
			if err != nil || record != recordOf(t, g) {
				t.Skipf("built by another compiler than the one here: %q, %v", record, err)
			}
			built := filepath.Join(t.TempDir(), "built.wasm")
			if err := g.Build(built); errors.Is(err, plugins.ErrNoPackage) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			got, gotErr := os.ReadFile(built)
			want, err := os.ReadFile(g.Module)
			if err := errors.Join(gotErr, err); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is stale: go run ./examples/plugins/build %s", g.Module, g.Folder())
			}
		})
	}
}
