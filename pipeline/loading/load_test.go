package loading

import (
	"context"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// closing counts how often it was closed.
type closing struct {
	graphtest.Described
	closed *int
}

func (c closing) Close() error { *c.closed++; return nil }

func TestCheck_ClosesWhatItLoads(t *testing.T) {
	closed := 0
	parts := graphtest.Loading()
	parts.Load = func(ctx context.Context, name string, e graph.EnvTable, dir string) (env.Plugin, error) {
		p, err := graphtest.Load(ctx, name, e, dir)
		if err != nil {
			return nil, err
		}
		return closing{p.(graphtest.Described), &closed}, nil
	}
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[env.gone]\nuse = \"./gone\"\n" +
		"[train]\npreset = \"ppo\"\nenv = \"cartpole\"\n"
	g, problems := graph.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
	if g == nil {
		t.Fatal(problems)
	}
	if _, _, err := Check(t.Context(), g, parts); err == nil || closed != 1 {
		t.Errorf("Check: %v, %d plugins closed, want an error and 1", err, closed)
	}
}
