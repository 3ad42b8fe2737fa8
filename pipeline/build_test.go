package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

func TestBuild_Resumes(t *testing.T) {
	w, p := start(t, tickFile(plain), BuildOptions{
		Resume: map[string]component.State{"sink": {Meta: sinkState{995}}},
	}, "component.sink.stop_at=996")
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.total.Load() != 5 {
		t.Errorf("ended after %d ticks, want 5: the next boundary is at 1000", w.total.Load())
	}
}

func TestBuild_ErrorsReleaseEverything(t *testing.T) {
	cases := []struct {
		name, set, want string
		resume          map[string]component.State
	}{
		{"start", "component.source.fail_start=true", "source: no luck", nil},
		{"unbound slot", "component.sink.silent=true", `sink: kind sink does not bind its slot "on_ticks"`, nil},
		{"restore", "run.seed=1", "sink: restore: state is a <nil>", map[string]component.State{"sink": {}}},
		{"unknown state", "run.seed=1", "1 components that the pipeline does not have",
			map[string]component.State{"learner": {}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, parts := newWorld()
			g := mustParse(t, tickFile(plain), parts, c.set)
			p, err := Build(t.Context(), g, BuildOptions{Parts: parts, Resume: c.resume})
			if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Build = %v, %v, want %q", p, err, c.want)
			}
			if len(w.stopped) != len(w.started) {
				t.Errorf("started %v, stopped %v", w.started, w.stopped)
			}
		})
	}
}

func TestClose_WithoutRunReleasesEverything(t *testing.T) {
	w, p := start(t, tickFile(plain), BuildOptions{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(w.stopped) != 2 {
		t.Errorf("stopped %v, want both components", w.stopped)
	}
}

func TestBuild_ProblemsOfPluginsHavePlaces(t *testing.T) {
	parts := graphtest.Loading()
	g := mustParse(t, "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"./gone.wasm\"\n[train]\npreset = \"ppo\"\n", parts)
	p, err := Build(t.Context(), g, BuildOptions{Parts: parts})
	var problems graph.Problems
	if p != nil || !errors.As(err, &problems) {
		t.Fatalf("Build = %v, %v, want Problems", p, err)
	}
	if len(problems) != 1 || problems[0].Code != "E012" || problems[0].Line != 5 {
		t.Errorf("problems:\n%s", problems)
	}
}

func TestBuild_EndsWithItsContext(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	parts := graphtest.Loading()
	parts.Load = func(ctx context.Context, _ string, _ graph.EnvTable, _ string) (env.Plugin, error) {
		cancel(stop)
		return nil, ctx.Err()
	}
	g := mustParse(t, "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\n", parts)
	if _, err := Build(ctx, g, BuildOptions{Parts: parts}); !errors.Is(err, stop) {
		t.Errorf("Build: %v, want %v", err, stop)
	}
}
