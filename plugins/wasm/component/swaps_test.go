package component

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/bombs"
)

// besieged is a training run of the real program, whose trajectories pass through a component that is swapped for others that mean harm.
type besieged struct {
	t       *testing.T
	program string
	dir     string
	mode    string
	cmd     *exec.Cmd
	output  *testkit.Buffer
	ended   chan struct{}
	client  *control.Client
	begun   int // runs

	refused, fellBack, takenBack, stayed, ends int
}

const besiegedPipeline = `rlhost = 1
[run]
name = "besieged"
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
env = "cartpole"
mode = %q
[component.learner]
lr_anneal_env_steps = 0
[swap]
trial_envs = 0
probation = "1h"
[component.between]
runtime = "wasm"
use = "./good.wasm"
max_restarts = 3
grants = ["log", "metric", "stop"]
limits = { step = "20ms", init = "20ms", memory = "4MiB", compile = "1s", compile_memory = "256MiB" }
[[wire]]
signal = "rollout.trajectories"
slot = "between.in"
mode = "queue"
depth = 64
on_full = "block"
replace = true
[[wire]]
signal = "between.out"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

func besiege(t *testing.T, program, mode string) *besieged {
	dir, err := os.MkdirTemp("", "rlhost-siege") // a short path, for the socket in it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &besieged{t: t, program: program, dir: dir, mode: mode}
	must(t, os.WriteFile(b.path("pipeline.toml"), fmt.Appendf(nil, besiegedPipeline, mode), 0o600))
	must(t, os.WriteFile(b.path("good.wasm"), built{manifest: described(reads("reward"))}.bytes(), 0o600))
	b.begin()
	return b
}

func (b *besieged) path(name string) string { return filepath.Join(b.dir, name) }

// begin begins the next run, and waits until it learns.
func (b *besieged) begin() {
	b.t.Helper()
	b.begun++
	b.cmd, b.output, b.ended = exec.Command(b.program, "train"), &testkit.Buffer{}, make(chan struct{})
	b.cmd.Dir, b.cmd.Env = b.dir, append(os.Environ(), "XDG_CACHE_HOME="+b.dir, "XDG_RUNTIME_DIR="+b.dir)
	b.cmd.Stdout, b.cmd.Stderr = b.output, b.output
	must(b.t, b.cmd.Start())
	cmd, ended := b.cmd, b.ended
	go func() {
		_ = cmd.Wait() // its code says how it ended
		close(ended)
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	b.t.Setenv("XDG_RUNTIME_DIR", b.dir)
	testkit.Until(b.t, "it answers", func() bool {
		var err error
		b.client, err = control.Dial(b.t.Context(), control.SocketPath(b.path(fmt.Sprintf("runs/besieged/%04d", b.begun))))
		return err == nil || b.over()
	}, b.output)
	if b.over() {
		b.t.Fatalf("it ends at once:\n%s", b.output)
	}
	b.goesOn("it begins", 0)
}

// over reports whether the run has ended, as a component may ask it to.
func (b *besieged) over() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

func (b *besieged) status() (s control.StatusReply) {
	if err := b.client.Do(b.t.Context(), control.VerbStatus, control.StatusRequest{}, &s, nil); err != nil && !b.over() {
		select {
		case <-b.ended:
		case <-time.After(time.Minute):
			b.t.Fatalf("status: %v\n%s", err, b.output)
		}
	}
	return s
}

// goesOn waits until the run has learned from more env steps than before, and says whether it has within a limit; 0 is none.
func (b *besieged) goesOn(name string, limit time.Duration) bool {
	b.t.Helper()
	before, began := b.status().Steps, time.Now()
	var s control.StatusReply
	on := false
	testkit.Until(b.t, name+": the run goes on", func() bool {
		s = b.status()
		on = s.Steps.Trained > before.Trained && s.Policy > 0
		return on || b.over() || limit > 0 && time.Since(began) > limit
	}, &s, b.output)
	return on
}

// addsUp checks that each env step is somewhere.
func (b *besieged) addsUp(name string) {
	b.t.Helper()
	s := b.status().Steps
	sum := uint64(0)
	for _, n := range s.Reasons {
		sum += n
	}
	if s.Made != s.Trained+s.Dropped+s.UnderWay || sum != s.Dropped {
		b.t.Errorf("%s: %+v", name, s)
	}
}

// meets swaps the component in the middle for a module, and checks that the run continues with the previous one afterwards.
func (b *besieged) meets(name string, module []byte) {
	b.t.Helper()
	must(b.t, os.WriteFile(b.path("evil.wasm"), module, 0o600))
	back := b.status().Swaps.RolledBack
	var reply control.SwapReply
	err := b.client.Do(b.t.Context(), control.VerbSwap, control.SwapRequest{Component: "between", File: b.path("evil.wasm")}, &reply, nil)
	var refused *control.Error
	switch {
	case errors.As(err, &refused) && refused.Code != "" && refused.Reason != "":
		b.refused++
	case err != nil && !b.over():
		b.t.Errorf("%s: swap = %v", name, err)
	}
	const patience = 3 * time.Second
	on := b.goesOn(name, patience)
	fell := b.status().Swaps.RolledBack > back
	if err == nil && !fell && !b.over() {
		err := b.client.Do(b.t.Context(), control.VerbRollback, control.RollbackRequest{Component: "between"}, nil, nil)
		switch {
		case b.over():
		case errors.As(err, &refused): // it has failed meanwhile
			testkit.Until(b.t, name+": the previous version runs again", func() bool {
				fell = b.status().Swaps.RolledBack > back
				return fell || b.over()
			}, err, b.output)
		case err != nil:
			b.t.Errorf("%s: rollback = %v\n%s", name, err, b.output)
		case on:
			b.stayed++
		default:
			b.takenBack++
		}
	}
	if fell {
		b.fellBack++
	}
	if b.over() {
		if code := b.cmd.ProcessState.ExitCode(); code != 0 {
			b.t.Errorf("%s: the run ended with %d\n%s", name, code, b.output)
		}
		b.ends++
		b.begin()
		return
	}
	b.goesOn(name, 0)
	b.addsUp(name)
}

// String says what became of the modules.
func (b *besieged) String() string {
	return fmt.Sprintf("%s: %d refused, %d fell back, %d taken back where the run stood still, %d stayed, %d ended the run", b.mode, b.refused, b.fellBack, b.takenBack, b.stayed, b.ends)
}

// TestHostile_SwapsHarmNoRun swaps a component of a run for one attack of each kind, synchronously and asynchronously, and for each bomb.
// Whether they are refused, fail on probation or stay until they are taken back, the run continues with the previous version, and env
// steps add up. `make test-hostile` runs it.
func TestHostile_SwapsHarmNoRun(t *testing.T) {
	if os.Getenv("RLHOST_HOSTILE") == "" {
		t.Skip("make test-hostile")
	}
	program := filepath.Join(t.TempDir(), "rlhost")
	testkit.Build(t, "../../../cmd/rlhost", program)
	kinds := map[string][]attack{}
	for _, a := range attacks() {
		kinds[a.kind] = append(kinds[a.kind], a)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, mode := range []string{"sync", "async"} {
		t.Run(mode, func(t *testing.T) {
			b := besiege(t, program, mode)
			for kind, list := range kinds {
				a := list[random.IntN(len(list))]
				b.meets(kind+"/"+a.name, a.module)
			}
			t.Log(b)
		})
	}
	t.Run("bombs", func(t *testing.T) {
		b := besiege(t, program, "async")
		var guest bombs.Guest = func(imports, after func(m *asm.Module)) []byte {
			return built{imports: imports, after: after, manifest: described(reads("reward"))}.bytes()
		}
		for _, x := range append(guest.Light(), guest.Heavy()...) {
			began := time.Now()
			b.meets(x.Name, x.Build())
			t.Logf("%-45s %5.1f s", x.Name, time.Since(began).Seconds())
		}
		t.Log(b)
	})
}
