package plugins_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// needs returns the path of the first program that is here, or skips the test.
func needs(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %v is here", names)
	return ""
}

// reads makes the test's cached result depend on files that only other programs open.
func reads(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, no files", pattern, err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				continue
			}
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// build builds a guest into a new folder and returns the folder, or skips the test where its compiler is missing.
func build(t *testing.T, guest string) string {
	t.Helper()
	reads(t, "build.sh", guest+"/*")
	if strings.HasSuffix(guest, "-go") {
		reads(t, "cartpole-go/cartpole/*.go", "../../sdk/*.go", "../../sdk/wasm/*.go", "../../hostabi/*.go")
	}
	dir := t.TempDir()
	cmd := exec.Command("./build.sh", guest)
	cmd.Env = append(os.Environ(), "OUT="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Fatalf("build %s: %v\n%s", guest, err, out)
	}
	return dir
}

// runGuest runs a guest under Node, once for each list of arguments, and returns what each run prints: a hash,
// or a line that begins with error.
func runGuest(t *testing.T, module string, runs ...[]string) []string {
	t.Helper()
	reads(t, "golden/run_guest.mjs", module)
	args := []string{"golden/run_guest.mjs", module}
	for i, run := range runs {
		if i > 0 {
			args = append(args, "+")
		}
		args = append(args, run...)
	}
	cmd := exec.Command(needs(t, "node"), args...)
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
	needs(t, "node")
	modules := map[string]func(*testing.T) string{
		"c simd":   func(*testing.T) string { return "cartpole-c/cartpole.wasm" },
		"c scalar": func(*testing.T) string { return "cartpole-c/cartpole_scalar.wasm" },
		"rust":     func(*testing.T) string { return "cartpole-rust/cartpole.wasm" },
		"go":       func(t *testing.T) string { return filepath.Join(build(t, "cartpole-go"), "cartpole-go.wasm") },
	}
	for name, module := range modules {
		t.Run(name, func(t *testing.T) {
			var runs [][]string
			for _, v := range variants() {
				runs = append(runs, v.arguments())
			}
			got := runGuest(t, module(t), runs...)
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
	out, err := exec.Command(program, "envs=7", "steps=400", "seed=3").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := nativeTrace(7, 400, 3); !strings.Contains(string(out), "trace "+want) {
		t.Errorf("output %q, want trace %s", out, want)
	}
}

// compileNative builds a C environment with the machine's own compiler, with sanitizers where it has them.
func compileNative(t *testing.T, source, program string) {
	t.Helper()
	cc := needs(t, "cc", "gcc", "clang")
	reads(t, source, "../../sdk/c/*.h")
	flags := []string{"-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-I", "../../sdk/c", source, "-o", program}
	sanitize := append([]string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}, flags...)
	if exec.Command(cc, sanitize...).Run() == nil {
		return
	}
	if out, err := exec.Command(cc, flags...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestCorridor_IsTheSameInThreeLanguages(t *testing.T) {
	needs(t, "node")
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
	for _, guest := range []string{"corridor-c", "corridor-go", "corridor-rust"} {
		t.Run(guest, func(t *testing.T) {
			got := runGuest(t, filepath.Join(build(t, guest), guest+".wasm"), runs...)
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

// committed lists the modules in the repository, by the guest that build.sh knows.
func committed() map[string][]string {
	return map[string][]string{
		"acrobot-c":     {"acrobot.wasm"},
		"cartpole-c":    {"cartpole.wasm", "cartpole_scalar.wasm"},
		"cartpole-rust": {"cartpole.wasm"},
		"corridor-c":    {"corridor.wasm"},
		"mountaincar-c": {"mountaincar.wasm"},
	}
}

// sources lists what a guest's modules are made from.
func sources(t *testing.T, guest string) []string {
	t.Helper()
	patterns := []string{"build.sh", "../../sdk/c/*.h", guest + "/*.c"}
	if strings.HasSuffix(guest, "-rust") {
		patterns = []string{"build.sh", "../../sdk/rust/Cargo.toml", "../../sdk/rust/src/*.rs",
			guest + "/Cargo.toml", guest + "/.cargo/config.toml", guest + "/src/*.rs"}
	}
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(found))
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return files
}

func TestModules_AreMadeFromTheSourcesBesideThem(t *testing.T) {
	for guest := range committed() {
		sum := sha256.New()
		for _, file := range sources(t, guest) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(data)
		}
		record, err := os.ReadFile(filepath.Join(guest, "build.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("sources %x\n", sum.Sum(nil)); !strings.HasSuffix(string(record), want) {
			t.Errorf("%s/build.txt says %q, the sources are %q: run examples/plugins/build.sh %s", guest, record, want, guest)
		}
	}
}

// Cargo names crates by the folder that they lie in, and the code is laid out by those names: a clone elsewhere gives
// other bytes. Rust modules are held to their sources by the record alone, and to what they compute by the traces.
func TestModules_AreWhatTheirCompilerMakes(t *testing.T) {
	for guest, modules := range committed() {
		if strings.HasSuffix(guest, "-rust") {
			continue
		}
		t.Run(guest, func(t *testing.T) {
			record, err := os.ReadFile(filepath.Join(guest, "build.txt"))
			if err != nil {
				t.Fatal(err)
			}
			compiler, err := exec.Command("./build.sh", "compiler", guest).Output()
			if err != nil || !strings.HasPrefix(string(record), "compiler "+string(compiler)) {
				t.Skipf("built by another compiler than the one here, %q", compiler)
			}
			dir := build(t, guest)
			for _, module := range modules {
				got, err := os.ReadFile(filepath.Join(dir, strings.Replace(module, strings.Split(guest, "-")[0], guest, 1)))
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(filepath.Join(guest, module))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s/%s is stale: run examples/plugins/build.sh %s", guest, module, guest)
				}
			}
		})
	}
}
