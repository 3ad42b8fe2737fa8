package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/cmd/rlhost/project"
	"github.com/rlhost/rlhost/internal/testkit"
)

// newLimit is how much time of processors it may take from nothing to a policy: no more than a minute where nothing else runs.
const newLimit = time.Minute

// TestNew_TrainsToItsGoal makes a folder of each kind in each language, tests it by its own script and trains in it. Those whose build asks a
// registry, and all but C where there is no time, belong to make test-langs.
func TestNew_TrainsToItsGoal(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	testkit.Build(t, ".", bin)
	python, err := filepath.Abs("../../.venv/bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH")+":"+python) // Python's package of Zig is there
	t.Setenv("GOFLAGS", "")
	for _, l := range project.Languages() {
		for _, kind := range l.Kinds {
			t.Run(kind+"/"+l.Name, func(t *testing.T) {
				if os.Getenv("RLHOST_LONG") == "" && l.Name != "c" {
					t.Skip("make test-langs makes folders in all languages")
				}
				if kind == project.Env && l.Name == "python" {
					t.Skip("the folder of the kind python has all of its files")
				}
				name := "new-" + kind + "-" + l.Name
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				begin, used := time.Now(), usedByChildren(t)
				made := inFolder(t, ctx, dir, "rlhost", "new", kind, name, "--lang", l.Name)
				if strings.Contains(made, codeNoCompiler) {
					t.Skipf("no compiler of %s is here: %s", l.Title, l.Install)
				}
				folder := filepath.Join(dir, name)
				trained := inFolder(t, ctx, folder, "rlhost", "train")
				if !strings.Contains(trained, "target reached") {
					t.Errorf("rlhost train does not reach its goal:\n%s", trained)
				}
				used = usedByChildren(t) - used
				t.Logf("from nothing to a policy in %.1f s, of which processors worked %.1f s", time.Since(begin).Seconds(), used.Seconds())
				if used > newLimit {
					t.Errorf("from nothing to a policy processors worked %v, want %v at most", used, newLimit)
				}
				tested := inFolder(t, ctx, folder, "./test.sh")
				if want := testsOf(kind, l.Name); !strings.Contains(tested, want) {
					t.Errorf("test.sh does not print %q but\n%s", want, tested)
				}
				if kind == project.Python {
					if out := inFolder(t, ctx, folder, ".venv/bin/python", "train.py"); !strings.Contains(out, "one episode:") {
						t.Errorf("train.py prints\n%s", out)
					}
				}
			})
		}
	}
}

// usedByChildren is the time of processors of all programs that this one has started and that have ended.
func usedByChildren(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// testsOf is what the script of tests prints in a folder: that a unit test ran, where the language has them, or that the checks passed.
func testsOf(kind, language string) string {
	if kind == project.Component && language != "python" {
		return "8 passed, 0 warnings, 0 failed"
	}
	switch language {
	case "c", "cpp":
		return "2 tests, 0 failures"
	case "rust":
		return "1 passed; 0 failed"
	case "go":
		return "ok  \tnew-"
	case "zig":
		return "All 1 tests passed"
	case "python":
		return " ok "
	}
	return " 0 warnings, 0 failed"
}

// inFolder runs a command in a folder, and returns what it prints.
func inFolder(t *testing.T, ctx context.Context, dir, name string, args ...string) string {
	t.Helper()
	if strings.HasPrefix(name, ".") {
		name = filepath.Join(dir, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v (%v)\n%s", name, args, err, ctx.Err(), out)
	}
	return string(out)
}

// The flags for editors compile the source, as clangd does.
func TestNew_FlagsForEditorsCompile(t *testing.T) {
	t.Parallel()
	clang := testkit.Needs(t, "clang-19", "clang")
	bin, dir := t.TempDir(), t.TempDir()
	testkit.Build(t, ".", bin)
	for kind, name := range map[string]string{project.Env: "seen", project.Component: "seen-too"} {
		inFolder(t, t.Context(), dir, filepath.Join(bin, "rlhost"), "new", kind, name, "--lang", "c", "--no-build")
		inFolder(t, t.Context(), filepath.Join(dir, name), clang, "@compile_flags.txt", "-fsyntax-only", "-Werror", name+".c")
	}
}

// Where no compiler is, the folder is complete, and the message says what to install.
func TestNew_SaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	var out, errOut strings.Builder
	if code := run([]string{"new", "env", "lost", "--lang", "c"}, &out, &errOut); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	if got, want := errOut.String(), "warning[W121]: no compiler of C works here; build.sh has the line of the usual one\n  help: apt-get install clang-19 lld-19"; !strings.HasPrefix(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	if want := "next: cd lost && ./build.sh && rlhost train\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
	script, err := os.ReadFile("lost/build.sh")
	if err != nil || !strings.Contains(string(script), "\nclang-19 --target=wasm32") {
		t.Errorf("build.sh (%v):\n%s", err, script)
	}
	out.Reset()
	if code := run([]string{"doctor", "--lang", "c"}, &out, &errOut); code != exitCheck || !strings.Contains(out.String(), "install: apt-get install clang-19") {
		t.Errorf("doctor: exit code %d\n%s", code, out.String())
	}
}

// A build that fails is an error with what the compiler printed, and the folder stays.
func TestNew_TellsOfABuildThatFails(t *testing.T) {
	bin := t.TempDir()
	compiler := "#!/bin/sh\ncase \"$*\" in *--version) echo broken 1;; *-include*|*'x c'*) exit 0;; *) echo 'maze.c:1: no' >&2; exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "clang-19"), []byte(compiler), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Chdir(t.TempDir())
	var out, errOut strings.Builder
	code := run([]string{"new", "env", "maze", "--lang", "c"}, &out, &errOut)
	if got := errOut.String(); code != exitFailed || !strings.Contains(got, "error[E118]: maze/build.sh: exit status 1\nmaze.c:1: no") {
		t.Errorf("exit code %d: %s", code, got)
	}
	if _, err := os.Stat("maze/maze.c"); err != nil {
		t.Error(err)
	}
}

func TestDoctor_BuildsWhatItNames(t *testing.T) {
	testkit.Needs(t, "clang-19", "clang")
	var out, errOut strings.Builder
	if code := run([]string{"doctor", "--lang", "c"}, &out, &errOut); code != exitOK || !strings.Contains(out.String(), "builds, ") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errOut.String())
	}
}
