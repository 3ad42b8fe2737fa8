package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// Files that are small and would be slow if checks compared everything with everything: each has to come back with
// an error. The test's own time limit is the judge.
func TestParse_HostileFilesComeBack(t *testing.T) {
	repeat := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	list := func(n int, format string) string { return "[" + repeat(n, format) + "]" }
	const wire = "mode = \"all\"\ndepth = 1\non_full = \"block\"\n"
	cases := map[string]string{
		"large":              strings.Repeat("#\n", graph.MaxBytes),
		"deep key":           strings.Repeat("a.", 30_000) + "a = 1\n",
		"deep list":          "a = " + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000),
		"deep inline tables": "a = " + strings.Repeat("{a=", 10_000) + "1" + strings.Repeat("}", 10_000),
		"unclosed":           "a = " + strings.Repeat("{a=", 10_000),
		"unknown keys":       repeat(5000, "key%d = 1\n"),
		"one long line":      "run = { " + repeat(4000, "key%d = 1, ") + "}\n",
		"duplicates":         strings.Repeat("a = 1\n", 5000),
		"long names":         "run = { " + strings.Repeat("n", 30_000) + " = 1 }\n" + strings.Repeat("r", 30_000) + " = 2\n",
		"many components":    repeat(2000, "[component.c%d]\nkind = \"runner\"\n"),
		"many wires":         "[[wire]]\n" + wire + "signal = " + list(2500, "\"a.b%d\",") + "\nslot = " + list(2500, "\"c.d%d\",") + "\n",
		"many policies":      "[run]\nname = \"x\"\n[env.e]\nuse = \"./e.wasm\"\n[train]\npreset = \"ppo\"\n[component.rollout.opponents]\n" + repeat(4000, "\"main@%d\" = 1\n"),
		"broken lines":       strings.Repeat("a = \"\n", 5000),
		"deep after broken":  "a = \"\n" + strings.Repeat("b.", 30_000) + "b = 1\n",
		"nulls":              strings.Repeat("\x00", 1000),
		"not UTF-8":          "a = \"\xff\xfe\"\n",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			g, problems := graphtest.Parse("x.toml", []byte("rlhost = 1\n"+text), graph.ParseOptions{Parts: graphtest.Standard()})
			if g != nil || len(problems) == 0 || len(problems) > graph.MaxProblems {
				t.Errorf("%d problems, graph %v", len(problems), g)
			}
			if n := len(problems.String()); n > 1<<20 {
				t.Errorf("problems print %d bytes", n)
			}
		})
	}
}
