package graph_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"

	"github.com/rlhost/rlhost/core/bus"
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
			g := drawn(t, a.At("graph").Data)
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

// drawn reads a graph: either the name of a file, or lines of "from signal to mode depth", with a component's
// number of instances behind a star.
func drawn(t *testing.T, text string) *graph.Graph {
	t.Helper()
	if file := strings.TrimSpace(text); strings.HasSuffix(file, ".toml") {
		return parseFile(t, file)
	}
	g := &graph.Graph{Run: graph.RunTable{Name: "drawn"}}
	add := func(title string) string {
		name, count, _ := strings.Cut(title, "*")
		if g.Component(name) == nil {
			c := graph.Component{Name: name, Count: 1, Loop: name}
			fmt.Sscan(count, &c.Count)
			g.Components = append(g.Components, c)
		}
		return name
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		w := graph.Wire{From: add(f[0])}
		if len(f) == 1 {
			continue
		}
		w.Signal, w.To = f[1], add(f[2])
		w.Mode, _ = bus.ParseMode(f[3])
		fmt.Sscan(f[4], &w.Depth)
		g.Wires = append(g.Wires, w)
	}
	return g
}

// Whatever the graph, every component and every wire is in the picture, and lines end where they should: below
// each head a line begins.
func TestDraw_RandomGraphsAreComplete(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(r)
		picture, err := g.Draw("ascii")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range g.Components {
			if !strings.Contains(picture, c.Name) {
				t.Fatalf("seed %d: %s is missing in\n%s", seed, c.Name, picture)
			}
		}
		for _, w := range g.Wires {
			if !strings.Contains(picture, w.Signal) {
				t.Fatalf("seed %d: %s is missing in\n%s", seed, w.Signal, picture)
			}
		}
		checkHeads(t, seed, picture)
	}
}

func randomGraph(r *rand.Rand) *graph.Graph {
	g := &graph.Graph{}
	for i := range 1 + r.IntN(7) {
		g.Components = append(g.Components, graph.Component{Name: fmt.Sprintf("node%d%s", i, strings.Repeat("x", r.IntN(6))), Count: 1 + r.IntN(2)})
	}
	for i := range r.IntN(12) {
		from, to := g.Components[r.IntN(len(g.Components))], g.Components[r.IntN(len(g.Components))]
		g.Wires = append(g.Wires, graph.Wire{From: from.Name, To: to.Name, Signal: fmt.Sprintf("sig%d%s", i, strings.Repeat("y", r.IntN(12))),
			Mode: bus.Mode(r.IntN(4)), Depth: 8})
	}
	return g
}

func checkHeads(t *testing.T, seed uint64, picture string) {
	t.Helper()
	var rows [][]rune
	for line := range strings.Lines(picture) {
		rows = append(rows, []rune(strings.TrimSuffix(line, "\n")))
	}
	at := func(row, col int) rune {
		if row < 0 || row >= len(rows) || col >= len(rows[row]) {
			return ' '
		}
		return rows[row][col]
	}
	for row := range rows {
		for col, r := range rows[row] {
			switch {
			case r == '▲' && !strings.ContainsRune("│└┘┼", at(row+1, col)):
				t.Fatalf("seed %d: nothing below the head at %d:%d of\n%s", seed, row, col, picture)
			case (r == '└' || r == '┘') && !strings.ContainsRune("│┼▲", at(row-1, col)) && at(row-1, col) == ' ':
				t.Fatalf("seed %d: nothing above the corner at %d:%d of\n%s", seed, row, col, picture)
			}
		}
	}
}

func TestDraw_UnknownFormat(t *testing.T) {
	if _, err := (&graph.Graph{}).Draw("png"); err == nil {
		t.Error("Draw(png) gives no error")
	}
}

func TestDraw_TooManyWiresBecomeAList(t *testing.T) {
	g := &graph.Graph{}
	for i := range 20 {
		g.Components = append(g.Components, graph.Component{Name: fmt.Sprint("n", i), Count: 1})
	}
	for i := range 20 {
		for j := range 10 {
			g.Wires = append(g.Wires, graph.Wire{From: fmt.Sprint("n", i), To: fmt.Sprint("n", (i+j)%20), Signal: "s"})
		}
	}
	picture, err := g.Draw("ascii")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(picture, "──▶"); got != 200 {
		t.Errorf("%d arrows, want 200", got)
	}
}
