package seeds

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// newSet returns a set of these seeds, and a trainer whose program is a shell script.
func newSet(t *testing.T, script string, seeds ...uint64) *Trainer {
	t.Helper()
	dir := t.TempDir()
	program, pipeline := filepath.Join(dir, "rlhost"), filepath.Join(dir, "pipeline.toml")
	for name, text := range map[string]string{program: "#!/bin/sh\n" + script, pipeline: "rlhost = 1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set, err := New(dir, "toy", pipeline, []string{"a.b=1"}, seeds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Trainer{Program: program, Set: set, Jobs: 2, Observe: func(runs.SeedRun, Progress) {}}
}

// endLine prints the last line of a training of the seed in $seed.
const endLine = `
for a in "$@"; do case "$a" in run.seed=*) seed=${a#run.seed=};; esac; done
[ "$seed" = 3 ] && { echo 'a pole broke' >&2; exit 1; }
echo '{"event":"start","run":"toy/0001"}'
echo '{"event":"progress","env_steps":7}'
echo "{\"event\":\"end\",\"reason\":\"env_steps\",\"env_steps\":9,\"eval_return\":$seed,\"eval_greedy\":{\"mean_return\":$seed},\"run\":\"toy/0001\"}"
`

func TestTrainer_AFailingSeedIsCountedAndTheOthersContinue(t *testing.T) {
	t.Parallel()
	trainer := newSet(t, endLine, 1, 3, 5)
	var mu sync.Mutex
	var progressed uint64
	trainer.Observe = func(_ runs.SeedRun, p Progress) {
		mu.Lock()
		defer mu.Unlock()
		progressed = max(progressed, p.EnvSteps)
	}
	if err := trainer.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	reopened, err := runs.OpenSet("", trainer.Set.Dir)
	if err != nil {
		t.Fatal(err)
	}
	info := reopened.Info()
	scores, ended, failed := Results(&info)
	if len(scores) != 2 || ended != 2 || failed != 1 || scores[1] != 5 || progressed != 7 {
		t.Errorf("scores %v, %d ended, %d failed, progress %d", scores, ended, failed, progressed)
	}
	if r := info.Seeds[1]; r.Error != "a pole broke" {
		t.Errorf("the failed seed says %q", r.Error)
	}
	if r := info.Seeds[0]; r.Run != filepath.Join("seed-1", "toy", "0001") || r.Greedy == nil || *r.Greedy != 1 || r.Sampled != nil {
		t.Errorf("the first seed is %+v", r)
	}

	// Once more: failed seeds are trained again, ended ones are not.
	if err := os.WriteFile(trainer.Program, []byte("#!/bin/sh\n"+strings.ReplaceAll(endLine, `"$seed" = 3`, `"$seed" != 3`)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := trainer.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	info = trainer.Set.Info()
	if _, ended, failed := Results(&info); ended != 3 || failed != 0 {
		t.Errorf("%d ended and %d failed the second time", ended, failed)
	}
}

func TestTrainer_InterruptedSeedsStayPending(t *testing.T) {
	t.Parallel()
	trainer := newSet(t, "trap 'exit 130' INT\necho '{\"event\":\"progress\",\"env_steps\":1}'\nwhile :; do sleep 0.01; done\n", 1, 2, 3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	trainer.Observe = func(_ runs.SeedRun, p Progress) {
		if p.EnvSteps == 1 {
			cancel()
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- trainer.Run(ctx) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("an interrupted set goes on")
	}
	for _, r := range trainer.Set.Info().Seeds {
		if r.State != runs.Pending {
			t.Errorf("seed %d is %s", r.Seed, r.State)
		}
	}
}

func TestTrainer_RefusesAnotherPipeline(t *testing.T) {
	t.Parallel()
	trainer := newSet(t, endLine, 1)
	if err := os.WriteFile(trainer.Set.Info().Pipeline, []byte("rlhost = 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := trainer.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "is not the file that the set was begun with") {
		t.Errorf("Run = %v", err)
	}
}

// TestTrainer_SurvivesATrainingsOutput: neither noise, nor half a line, nor a line without an end is trusted.
func TestTrainer_SurvivesATrainingsOutput(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo noise; echo '{\"event\":\"start\"}'":          "the training said nothing of its end",
		"printf '{\"event\":\"end\"'":                       "the training said nothing of its end",
		"head -c 3000000 /dev/zero; exit 4":                 "exit status 4",
		"head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1": "xxx",
		"kill -9 $$": "signal: killed",
	} {
		trainer := newSet(t, script, 1)
		if err := trainer.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := trainer.Set.Info().Seeds[0]
		if r.State != runs.SeedFailed || !strings.Contains(r.Error, want) || len(r.Error) > maxComplaint {
			t.Errorf("%s: seed is %s with %.100q of %d bytes, want %q", script, r.State, r.Error, len(r.Error), want)
		}
	}
}
