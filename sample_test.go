package rlhost_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost"
)

// collect iterates to the end, and returns the blocks that there were and the error.
func collect(ctx context.Context, o rlhost.Options, each func(n int)) (n int, err error) {
	for block, failed := range rlhost.Sample(ctx, "rollout.trajectories", o) {
		if failed != nil {
			err = failed
			continue
		}
		if _, failed := block.Column("reward"); failed != nil {
			return n, failed
		}
		if n++; each != nil {
			each(n)
		}
	}
	return n, err
}

func TestSample_EndsWithTheRun(t *testing.T) {
	t.Parallel()
	n, err := collect(t.Context(), rlhost.Options{Text: sampler, Set: []string{"run.dir=" + t.TempDir(), "run.stop.env_steps=10000"}}, nil)
	if n < 10000/(16*32/2)-4 || err != nil {
		t.Errorf("%d blocks, %v; want nearly all of 10,000 env steps", n, err)
	}
}

func TestSample_TrainsMeanwhile(t *testing.T) {
	t.Parallel()
	n, err := collect(t.Context(), rlhost.Options{Text: cartpole, Set: []string{"run.dir=" + t.TempDir()}}, nil)
	if n == 0 || err != nil {
		t.Errorf("%d blocks, %v", n, err)
	}
}

func TestSample_TellsWhy(t *testing.T) {
	t.Parallel()
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	n, err := collect(ctx, rlhost.Options{Text: sampler, Set: []string{"run.dir=" + t.TempDir()}}, func(n int) {
		if n == 3 {
			cancel(stop)
		}
	})
	if n < 3 || !errors.Is(err, stop) {
		t.Errorf("%d blocks, %v; want the cause", n, err)
	}
	_, err = collect(t.Context(), rlhost.Options{Text: sampler, Set: []string{"component.rollout.horizon=0"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "horizon") {
		t.Errorf("%v, want the key that is wrong", err)
	}
	_, err = collect(t.Context(), rlhost.Options{File: "nothing.toml"}, nil)
	if err == nil || !strings.Contains(err.Error(), "nothing.toml") {
		t.Errorf("%v, want the file that is missing", err)
	}
}

func TestSample_APanicEndsTheRun(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_, _ = collect(t.Context(), rlhost.Options{Text: sampler, Set: []string{"run.dir=" + t.TempDir()}}, func(int) { panic("mine") })
}

// BenchmarkSample iterates over blocks of 64 rows; one iteration of the benchmark is an env step.
func BenchmarkSample(b *testing.B) {
	for _, envs := range []int{64, 1024} {
		b.Run(fmt.Sprintf("envs=%d", envs), func(b *testing.B) {
			text := strings.NewReplacer("envs = 16", fmt.Sprintf("envs = %d\nsplits = 1\nblocks = 4\nloop = \"one\"", envs), "horizon = 32", "horizon = 64",
				`kind = "random"`, "kind = \"random\"\nloop = \"one\"").Replace(sampler)
			n, began := 0, time.Now()
			for block, err := range rlhost.Sample(b.Context(), "rollout.trajectories", rlhost.Options{Text: text, Set: []string{fmt.Sprintf("run.dir=%q", b.TempDir())}}) {
				if err != nil {
					b.Fatal(err)
				}
				if n == 0 {
					began = time.Now()
				}
				reward, err := block.Column("reward")
				if err != nil {
					b.Fatal(err)
				}
				if n += reward.Rows * reward.Envs; n >= b.N {
					break
				}
			}
			b.ReportMetric(float64(n)/time.Since(began).Seconds(), "envsteps/s")
		})
	}
}
