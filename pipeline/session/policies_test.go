package session_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// The learned policy is found, wherever it is in the file, and no other is trained.
func TestTrain_PoliciesAreLookedUpByName(t *testing.T) {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	two := cartpole + "[policy.another]\nenv = \"cartpole\"\nnet = { hidden = [8] }\n[policy.main]\nnet = { hidden = [4] }\n"
	for name, want := range map[string]string{"": "", "main": "", "another": "no learner learns", "mian": `no policy "mian"`} {
		dir := t.TempDir()
		g, problems := graphtest.Parse("two.toml", []byte(two), graph.ParseOptions{Parts: parts, Sets: []string{"run.dir=" + dir, "run.stop.env_steps=2048"}})
		if g == nil {
			t.Fatal(problems)
		}
		r, err := session.Train(t.Context(), session.Options{Parts: parts, Graph: g, Policy: name, Log: slog.New(slog.DiscardHandler)})
		if want == "" {
			if err != nil || r.Evaluation == nil {
				t.Fatalf("%q: %+v, %v", name, r, err)
			}
			run, err := runs.Open(dir, "cartpole")
			if err != nil || run.Info().Policies["main"] == nil || run.Info().Policies["another"] != nil {
				t.Errorf("%q: the run's policies are %v, %v", name, run.Info().Policies, err)
			}
			continue
		}
		var e *session.Error
		if !errors.As(err, &e) || e.Kind != session.Config || !strings.Contains(err.Error(), "E043") || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "\n  help: ") {
			t.Errorf("%q: %v, want E043 about %q", name, err, want)
		}
	}
}
