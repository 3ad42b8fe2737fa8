package graph_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// TestDraw holds the pictures of the graphs in testdata/draw against what they are there.
func TestDraw(t *testing.T) {
	files, err := filepath.Glob("testdata/draw/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := graphtest.ReadArchive(t, file)
			g := parseFile(t, strings.TrimSpace(a.At("graph").Data))
			for _, s := range a.Sections[1:] {
				got, err := g.Draw(s.Name)
				if err != nil {
					t.Fatal(err)
				}
				a.Golden(t, file, s.Name, got)
			}
		})
	}
}

func TestDraw_UnknownFormat(t *testing.T) {
	if _, err := (&graph.Graph{}).Draw("png"); err == nil {
		t.Error("Draw(png) gives no error")
	}
}
