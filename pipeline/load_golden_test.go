package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

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
			a := graphtest.ReadArchive(t, file)
			sets := strings.Split(strings.TrimSuffix(a.At("sets").Data, "\n"), "\n")
			code, _, _ := strings.Cut(name, "_")
			got := complaints(t, a, sets, code == "W107")
			if code != "ok" && !strings.Contains(got, "["+code+"]") {
				t.Errorf("nothing is said with code %s", code)
			}
			a.Golden(t, file, "want", got)
		})
	}
}

// complaints returns everything that is said about a file, before and while its plugins are loaded. Other sections are files beside it; env has
// the variables of the environment. Most of the files have no rule that ends a run, which is told only where endless.
func complaints(t *testing.T, a *graphtest.Archive, sets []string, endless bool) string {
	t.Helper()
	if len(sets) == 1 && sets[0] == "" {
		sets = nil
	}
	parts := graphtest.Loading()
	parts.CheckWrapper = wrap.Check
	parts.Load = func(ctx context.Context, name string, e graph.EnvTable, dir string) (env.Plugin, error) {
		p, err := graphtest.Load(ctx, name, e, dir)
		if err != nil {
			return nil, err
		}
		return wrap.New(p, e.Wrap, nil)
	}
	g, problems := graphtest.Parse("pipeline.toml", []byte(a.At("pipeline.toml").Data),
		graph.ParseOptions{Parts: parts, Sets: sets, Read: a.Read, Getenv: a.Getenv})
	if !endless {
		problems = slices.DeleteFunc(problems, func(p graph.Problem) bool { return p.Code == "W107" })
	}
	text := problems.String()
	if (g == nil) != (problems.Err() != nil) {
		t.Errorf("graph %v with problems %v", g, problems)
	}
	if g == nil {
		return text
	}
	_, warnings, err := Check(t.Context(), g, parts)
	if text += warnings.String(); err != nil {
		text += err.Error() + "\n"
	}
	return text
}

// Codes stand in string literals.
var codePattern = regexp.MustCompile(`"([EW][0-9]{3})"`)

var codeLine = regexp.MustCompile(`(?m)^[^ ]+:\d+:\d+: (?:error|warning)\[([EW]\d{3})\]: `)

func TestErrors_EveryCodeHasAGoldenFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"graph/*.go", "loading/*.go", "fit/*.go"} {
		more, _ := filepath.Glob(pattern)
		files = append(files, more...)
	}
	// Of machines and of programs that compute policies, not of files: tests of graph, pipeline and cmd/rlhost show them.
	shown := map[string]bool{graph.CodeDevice: true, graph.CodeNoDevice: true, graph.CodeNoPlace: true, "E086": true, "W115": true, "W118": true}
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
