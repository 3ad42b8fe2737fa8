package graph_test

import (
	"io"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/graph/picture"
)

// FuzzParse checks that no file and no argument makes graph.Parse panic, that every problem prints with its place, and
// that the output of Expanded means the same.
func FuzzParse(f *testing.F) {
	graph.AddCorpus(f)
	f.Add("rlhost = 1\x00component.rollout.envs=16")
	a := graphtest.ReadArchive(f, "testdata/expanded/policies.txtar")
	f.Add(a.At("pipeline.toml").Data)
	f.Add(a.At("pipeline.toml").Data + "\x00component.rollout.policies={ player = \"main@3\" }")
	files := folder{
		"base.toml": "rlhost = 1\n[run]\nname = \"base\"\n[env.cartpole]\nuse = \"cartpole@1\"\nargs = { a = 1 }\n[train]\npreset = \"mine.toml\"\n",
		"mine.toml": "[preset]\nfrom = \"ppo\"\n[component.runner]\nlog = [\"${NAME}\"]\n",
		"$NAME":     "a $ { } \" ${NAME} $${NAME}",
	}
	f.Add("rlhost = 1\nextends = \"base.toml\"\n[run]\nname = \"x\"\n[env.cartpole]\nargs = { \"${NAME}\" = \"$$${NAME}$\", b = \"${NO:-$$}\" }\n")
	f.Add("rlhost = 1\nextends = \"base.toml\"\n\x00run.dir=\"${NAME}\"")
	f.Fuzz(func(t *testing.T, text string) {
		src, arg, _ := strings.Cut(text, "\x00")
		o := graph.ParseOptions{Parts: graphtest.Standard(), Read: files.read, Getenv: files.getenv}
		if arg != "" {
			o.Sets = []string{arg}
		}
		g, problems := graphtest.Parse("fuzz.toml", []byte(src), o)
		if (g == nil) != (problems.Err() != nil) {
			t.Fatalf("graph %v with problems:\n%s", g, problems)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Width < 1 || p.Message == "" {
				t.Errorf("problem without a place: %+v", p)
			}
			if _, ok := graph.Explain(p.Code); !ok {
				t.Errorf("no page for %s", p.Code)
			}
		}
		if g == nil {
			return
		}
		for _, format := range []string{"ascii", "dot", "mermaid"} {
			if err := picture.Draw(io.Discard, g, format); err != nil {
				t.Errorf("Draw(%s): %v", format, err)
			}
		}
		again, problems := graphtest.Parse("expanded.toml", []byte(g.Expanded()), graph.ParseOptions{Parts: graphtest.Standard()})
		if again == nil {
			t.Fatalf("expanded form does not parse:\n%s\n%s", problems, g.Expanded())
		}
		if again.Hash() != g.Hash() {
			t.Errorf("expanded form means something else:\n%s\n%s", g.Expanded(), again.Expanded())
		}
	})
}
