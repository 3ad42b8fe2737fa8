package picture_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/graph/picture"
)

// TestDraw compares the pictures of graphs with the ones in testdata.
func TestDraw(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := graphtest.ReadArchive(t, file)
			g := parsed(t, filepath.Join("..", strings.TrimSpace(a.At("graph").Data)))
			for _, s := range a.Sections[1:] {
				var got strings.Builder
				if err := picture.Draw(&got, g, s.Name); err != nil {
					t.Fatal(err)
				}
				a.Golden(t, file, s.Name, got.String())
			}
		})
	}
}

func TestDraw_UnknownFormat(t *testing.T) {
	if err := picture.Draw(io.Discard, &graph.Graph{}, "png"); err == nil {
		t.Error("Draw(png) gives no error")
	}
}

// parsed returns the graph of a file.
func parsed(t *testing.T, file string) *graph.Graph {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, problems := graphtest.Parse(file, src, graph.ParseOptions{Parts: graphtest.Standard()})
	if problems.Err() != nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	return g
}
