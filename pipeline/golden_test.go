package pipeline

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

var update = flag.Bool("update", false, "rewrite golden files")

// described is an environment that can only tell its spaces.
type described struct {
	env.Plugin
	obs   uint32
	limit int // of its episodes
}

func (d described) Spec() hostabi.EnvSpec {
	obs := hostabi.TensorDesc{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 1}
	obs.Shape[0] = d.obs
	act := hostabi.TensorDesc{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}
	return hostabi.EnvSpec{EpisodeLimit: d.limit, Tensors: []hostabi.TensorDesc{act, obs}}
}

func (d described) Hash() string { return strings.Repeat("0123", 16) }

func (d described) Close() error { return nil }

// narrow is one whose instances may have 64 MiB.
type narrow struct{ described }

func (n narrow) MemoryFor(blocks int, s *trajectory.Schema) (least, enough, limit uint64) {
	bytes := uint64(blocks) * uint64(s.GuestBytes)
	return bytes, bytes + 1<<20, 64 << 20
}

func loadDescribed(_ context.Context, _ string, e EnvTable, _ string) (env.Plugin, error) {
	switch e.Use {
	case "cartpole@1":
		return described{obs: 4, limit: 500}, nil
	case "pendulum@1":
		return described{obs: 3, limit: 200}, nil
	case "./endless.wasm":
		return described{obs: 4}, nil
	case "./image.wasm":
		return narrow{described{obs: 84 * 84 * 4, limit: 1000}}, nil
	case "./future.wasm":
		return nil, &LoadError{Code: "E050", Reason: "future.wasm speaks ABI 2, this rlhost 1", Help: "update rlhost"}
	case "./text.wasm":
		return nil, &LoadError{Code: "E014", Reason: "text.wasm is not a WebAssembly module", Help: "name the built file"}
	}
	return nil, &fs.PathError{Op: "open", Path: e.Use, Err: fs.ErrNotExist}
}

// loadingParts are the standard kinds with environments that can be loaded.
func loadingParts() *Parts {
	parts := standardParts()
	parts.Load = loadDescribed
	parts.Policy = func(decode func(into any) error, _ *hostabi.EnvSpec) (any, error) {
		return "policy", checkStandardPolicy(decode)
	}
	return parts
}

// TestErrors holds the whole text of what is said about broken files against testdata/errors. A file is named
// after the code that it is about.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			a := readArchive(t, file)
			sets := strings.Split(strings.TrimSuffix(a.at("sets").data, "\n"), "\n")
			got := complaints(t, a.at("pipeline.toml").data, sets)
			code, _, _ := strings.Cut(name, "_")
			if code != "ok" && !strings.Contains(got, "["+code+"]") {
				t.Errorf("nothing is said with code %s", code)
			}
			a.golden(t, file, "want", got)
		})
	}
}

// complaints returns everything that is said about a file, before and while its plugins are loaded.
func complaints(t *testing.T, src string, sets []string) string {
	t.Helper()
	if len(sets) == 1 && sets[0] == "" {
		sets = nil
	}
	parts := loadingParts()
	g, problems := Parse("pipeline.toml", []byte(src), ParseOptions{Parts: parts, Sets: sets})
	text := problems.String()
	if (g == nil) != (problems.Err() != nil) {
		t.Errorf("graph %v with problems %v", g, problems)
	}
	if g == nil {
		return text
	}
	warnings, err := CheckPlugins(t.Context(), g, parts)
	if text += warnings.String(); err != nil {
		text += err.Error() + "\n"
	}
	return text
}

var codeLine = regexp.MustCompile(`(?m)^[^ ]+:\d+:\d+: (?:error|warning)\[([EW]\d{3})\]: `)

func TestErrors_EveryCodeOfThisPackageHasAGoldenFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	goldenFiles, _ := filepath.Glob("testdata/errors/*.txtar")
	for _, file := range goldenFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codeLine.FindAllStringSubmatch(string(text), -1) {
			shown[m[1]] = true
		}
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codePattern.FindAllStringSubmatch(string(src), -1) {
			if !strings.HasSuffix(file, "_test.go") && !shown[m[1]] {
				t.Errorf("%s of %s is shown by no file in testdata/errors", m[1], file)
			}
		}
	}
}
