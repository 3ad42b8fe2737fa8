package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

// newcomer is a page that leads from an empty folder to a result, and what must be there to follow it.
type newcomer struct {
	page     string
	sections []string // the headings to follow; none: the whole page
	needs    []string
	prints   []string // what its commands print, in this order
}

// limit is how long following a page may take.
const limit = 5 * time.Minute

var newcomers = map[string]newcomer{
	"AssemblyScript": environmentIn("AssemblyScript", "npm"),
	"C":              environmentIn("C", "clang"),
	"C++":            environmentIn("C++", "clang++"),
	"Go":             environmentIn("Go", "go"),
	"Rust":           environmentIn("Rust", "cargo"),
	"Zig":            environmentIn("Zig", "zig"),
	"Shaper": {page: "docs/start/component.md", needs: []string{"clang"},
		prints: []string{"ended (env_steps)", " 0 failed", "pipeline.toml: ok", "shaped [reply] → rollout", "target reached", "evaluation: return 9"}},
	"Game": {page: "docs/start/game.md", needs: []string{"clang"},
		prints: []string{" 0 failed", "target reached", "evaluation: return", "catch.gif has", "wrote catch.html"}},
	"Reward": {page: "docs/start/reward.md", needs: []string{"clang"},
		prints: []string{" 0 failed", "train return -0.5", "swapped 32/32", "train return 0.9", "committed", "env steps): return 0.9"}},
	"Hosts": {page: "docs/start/hosts.md",
		prints: []string{"pipeline.toml: ok", "host a: HERE", "host d: HERE", "host d: LOST", "return "}},
	"Guest": {page: "docs/reference/guest.md", needs: []string{".venv"},
		prints: []string{" 0 failed", "target reached", "evaluation: return"}},
	"Gymnasium": {page: "docs/start/gymnasium.md", needs: []string{".venv"},
		prints: []string{" 0 failed", "target reached", "evaluation: return", "wrote thermostat.onnx"}},
}

// environmentIn is the page about environments, read in one language.
func environmentIn(language, compiler string) newcomer {
	return newcomer{page: "docs/start/environment.md", sections: []string{language, "Check it", "Train"}, needs: []string{compiler},
		prints: []string{" 0 failed", "target reached", "evaluation: return"}}
}

// followed are the pages that TestNewcomer follows, so that no other test runs their blocks apart.
var followed = func() (pages []string) {
	for _, n := range newcomers {
		pages = append(pages, n.page)
	}
	return pages
}()

// TestNewcomer_ReachesTheResult follows pages in an empty folder, from their first block to their last, with no word that they do not say:
// it writes the files that they show and types the commands.
func TestNewcomer_ReachesTheResult(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	testkit.Build(t, ".", bin)
	for name, n := range newcomers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follower{root: root, bin: bin, dir: t.TempDir(), tools: t.TempDir()}
			f.prepare(t, n.needs)
			printed := f.follow(t, n)
			for _, want := range n.prints {
				_, after, ok := strings.Cut(printed, want)
				if !ok {
					t.Fatalf("%s: the commands do not print %q, or not in this order:\n%s", n.page, want, printed)
				}
				printed = after
			}
		})
	}
}

// follower is somebody who follows a page in a folder of their own.
type follower struct{ root, bin, dir, tools string }

// prepare puts there what the page has the reader install; the test is skipped where that is missing.
func (f *follower) prepare(t *testing.T, needs []string) {
	t.Helper()
	for _, what := range needs {
		switch what {
		case "clang": // which Debian calls clang-19
			if err := os.Symlink(testkit.Needs(t, "clang-19", "clang"), filepath.Join(f.tools, "clang")); err != nil {
				t.Fatal(err)
			}
			continue
		case "clang++": // which Debian calls clang++-19, and which needs a library of C++ for WASI
			compiler := testkit.Needs(t, "clang++-19", "clang++")
			if exec.Command(compiler, "--target=wasm32-wasi", "-mexec-model=reactor", "-include", "string", "-x", "c++", os.DevNull, "-o", os.DevNull).Run() != nil {
				t.Skip("no C++ library for WASI is here: apt-get install wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32")
			}
			if err := os.Symlink(compiler, filepath.Join(f.tools, "clang++")); err != nil {
				t.Fatal(err)
			}
			continue
		case "zig": // which the package ziglang calls python-zig
			if err := os.Symlink(testkit.Needs(t, filepath.Join(f.root, ".venv/bin/python-zig")), filepath.Join(f.tools, "zig")); err != nil {
				t.Fatal(err)
			}
			continue
		case "npm": // which asks its registry: make test-langs
			testkit.Needs(t, "npm")
			if _, err := os.Stat(filepath.Join(f.root, ".cache/languages")); err != nil {
				t.Skip("no compilers of further languages: run make test-langs")
			}
			continue
		case "cargo":
			testkit.NeedsRust(t, testkit.WasmTarget)
			continue
		case "go":
			testkit.Needs(t, "go")
			continue
		}
		if _, err := os.Stat(filepath.Join(f.root, ".venv/bin/python")); err != nil {
			t.Skip("no Python environment: run make tools")
		}
		if err := os.Symlink(filepath.Join(f.root, ".venv"), filepath.Join(f.dir, ".venv")); err != nil {
			t.Fatal(err)
		}
	}
}

// follow writes the files and types the commands of a page; it returns what the commands print. Output that the page shows must be
// there too, up to its numbers.
func (f *follower) follow(t *testing.T, n newcomer) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var printed, last strings.Builder
	for _, b := range blocksOf(t, n.page) {
		if len(n.sections) > 0 && !slices.Contains(n.sections, b.section) {
			continue
		}
		switch {
		case b.name != "":
			path := filepath.Join(f.dir, b.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case b.language == "sh":
			last.Reset()
			for line := range strings.Lines(b.text) {
				out, err := f.command(ctx, line)
				fmt.Fprintf(&printed, "$ %s%s", line, out)
				last.Write(out)
				if err != nil {
					t.Fatalf("%s:%d: %s: %v\n%s", n.page, b.line, line, err, out)
				}
			}
		case b.language == "text":
			for line := range strings.Lines(b.text) {
				if !strings.Contains(numbers.ReplaceAllString(last.String(), "0"), numbers.ReplaceAllString(strings.TrimSpace(line), "0")) {
					t.Errorf("%s:%d: the commands above do not print %q but\n%s", n.page, b.line, line, last.String())
				}
			}
		default:
			t.Errorf("%s:%d: a block in %q has no name: nobody writes it", n.page, b.line, b.language)
		}
	}
	return printed.String()
}

// numbers differ from machine to machine.
var numbers = regexp.MustCompile(`-?\d[\d.]*(e[-+]\d+)?`)

// command runs one line of a page. What it would install is there: pip is asked whether it would find that.
func (f *follower) command(ctx context.Context, line string) ([]byte, error) {
	switch {
	case strings.HasPrefix(line, "python3 -m venv "):
		return nil, nil
	case strings.HasPrefix(line, ".venv/bin/pip install "):
		line = strings.Replace(line, " install ", " -q install --dry-run --no-index --no-deps --no-build-isolation ", 1)
	}
	cmd := exec.CommandContext(ctx, "sh", "-euc", line)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "RLHOST="+f.root, "PATH="+f.bin+":"+f.tools+":"+os.Getenv("PATH"), "GOFLAGS=", "CARGO_NET_OFFLINE=true", "CGO_ENABLED=0")
	return cmd.CombinedOutput()
}
