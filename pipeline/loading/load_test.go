package loading

import (
	"context"
	"strings"
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

// What blocks keep for a policy is forecast.
func TestForecast_CountsWhatPoliciesKeep(t *testing.T) {
	trajectories := func(net string) int64 {
		text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\n" + net
		g, problems := graph.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Loading()})
		if g == nil {
			t.Fatal(problems)
		}
		needs, _, err := Check(t.Context(), g, graphtest.Loading())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needs {
			if strings.Contains(n.Keys, "rollout.horizon") {
				return n.Bytes
			}
		}
		t.Fatalf("needs %v", needs)
		return 0
	}
	plain, keeps := trajectories(""), trajectories("[policy.main]\nnet = { chunk = 16 }\n")
	if more := keeps - plain; more < 8*256*4 {
		t.Errorf("%d bytes with a state of 256 numbers for 8 environments, %d without", keeps, plain)
	}
}
