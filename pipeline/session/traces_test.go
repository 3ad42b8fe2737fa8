package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rlhost/rlhost/internal/training"
)

// The way of a dataset through a run is there for a collector, stage by stage, and the run learns the same.
func TestTraces_OfARunHaveEachStage(t *testing.T) {
	t.Parallel()
	const text = `rlhost = 1
[run]
name = "traced"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
`
	dir := t.TempDir()
	plain, _, err := training.Run(t.Context(), dir, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	traced, _, err := training.Run(t.Context(), dir, text, nil, "run.traces=traces.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if plain.ParamsHash != traced.ParamsHash {
		t.Errorf("parameters %s, with traces %s", plain.ParamsHash, traced.ParamsHash)
	}
	if _, err := os.Stat(filepath.Join(dir, "traced/0001/traces.jsonl")); err == nil {
		t.Error("a run without run.traces has traces")
	}
	lines, err := os.ReadFile(filepath.Join(dir, "traced/0002/traces.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(lines, []byte("\n"))
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(first)
	if err != nil {
		t.Fatal(err)
	}
	spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	count, end := map[string]int{}, map[string]int64{}
	for i := range spans.Len() {
		s := spans.At(i)
		count[s.Name()]++
		from, to := s.StartTimestamp().AsTime().UnixNano(), s.EndTimestamp().AsTime().UnixNano()
		if before := map[string]string{"learner": "batcher", "inference": "learner"}[s.Name()]; from > to || from < end[before] {
			t.Errorf("%s is from %d to %d, %s until %d", s.Name(), from, to, before, end[before])
		}
		end[s.Name()] = to
	}
	if count["dataset"] != 1 || count["rollout"] < 1 || count["batcher"] != 1 || count["learner"] != 1 || count["inference"] != 1 {
		t.Errorf("spans %v", count)
	}
	version, _ := spans.At(spans.Len() - 1).Attributes().Get("rlhost.policy_version")
	if version.Int() != 1 {
		t.Errorf("the first dataset makes version %d", version.Int())
	}
}
