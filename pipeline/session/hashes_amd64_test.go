package session_test

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// Synchronous training yields the same parameters in every version, unless CHANGELOG.md says why not. These are the hashes
// for the first file that a user sees, by seed. AVX2 and AVX-512 give the same bits, the generic kernels others.
func TestTrain_ComesToTheParametersThatItHasAlwaysComeTo(t *testing.T) {
	text, err := os.ReadFile("../../pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[string]string{"1": "f47b4febf278", "2": "7dcc5890bcf4", "3": "09986888cfa2"}
	for kernels, hashes := range map[string]map[string]string{
		"avx512": vectors, "avx2": vectors, "generic": {"1": "881a2b20ec93"},
	} {
		backend, err := cpu.NewWith(kernels)
		if err != nil {
			t.Logf("not on this machine: %v", err)
			continue
		}
		steps, reason := "500_000", component.StopReturn
		if kernels == "generic" { // which take long
			steps, reason = "8192", component.StopEnvSteps
		}
		for seed, want := range hashes {
			t.Run(kernels+"/"+seed, func(t *testing.T) {
				t.Parallel()
				parts, engines := builtin.New(builtin.Options{})
				defer func() {
					if err := engines.Close(); err != nil {
						t.Error(err)
					}
				}()
				decoded := parts.Policy
				parts.Policy = func(decode func(any) error, env *hostabi.EnvSpec) (component.Policy, error) {
					made, err := decoded(decode, env)
					if err == nil {
						made.(*policy.Definition).Backend = backend
					}
					return made, err
				}
				g, problems := graphtest.Parse("pipeline.toml", text, graph.ParseOptions{Parts: parts, Sets: []string{
					"run.dir=" + t.TempDir(), "run.seed=" + seed, "run.stop.env_steps=" + steps, "run.evaluation.episodes=1", "train.mode=sync",
				}})
				if g == nil {
					t.Fatal(problems)
				}
				result, err := session.Train(t.Context(), session.Options{Parts: parts, Graph: g})
				if err != nil {
					t.Fatal(err)
				}
				if result.Reason != reason || result.ParamsHash[:12] != want {
					t.Errorf("%s after %d env steps: parameters %.12s, want %s", result.Reason, result.EnvSteps, result.ParamsHash, want)
				}
			})
		}
	}
}
