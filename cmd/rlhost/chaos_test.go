package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// chaosOperations is how many random operations a run goes through.
const chaosOperations = 12

// chaosKills is how many of its processes are killed at most: each is started again so often and no more.
const chaosKills = 3

// chaos is a run that random operations are made on.
type chaos struct {
	*subject
	random *rand.Rand
	layout string   // what lies between rollout and learner: a row of newWrongShop's tables, or nothing
	file   string   // of the pipeline
	faults []string // of what lies between, as overrides
	kills  int
	lost   bool // env steps were dropped, or others are made than without the operations
}

// Random swaps, good and bad ones, kills, pauses, scalings, checkpoints and resumes, synchronously and asynchronously, with components in the
// host, in sandboxes and in processes: the run goes on after each, env steps add up, and a synchronous run that has lost nothing learns what
// the undisturbed one does. RLHOST_CHAOS is how many minutes it takes, RLHOST_CHAOS_SEED the seed of a run that is to be repeated.
func TestChaos_EverythingAtRandom(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("RLHOST_CHAOS"), 64)
	if err != nil {
		t.Skip("make test-chaos")
	}
	seed := rand.Uint64()
	repeated, err := strconv.ParseUint(os.Getenv("RLHOST_CHAOS_SEED"), 10, 64)
	if err == nil {
		seed = repeated
	}
	w, tables := newWrongShop(t)
	w.write("junk.wasm", "no module")
	w.copy("trap.wasm", faultyGuests+"/trap.wasm")
	w.write("plain.toml", strings.Split(endless("sync"), "[plugin.own]")[0])
	for end := time.Now().Add(time.Duration(minutes * float64(time.Minute))); time.Now().Before(end) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaosRun(w.of(t), tables, seed, end) })
		if err == nil {
			return
		}
	}
}

// chaosRun makes a run of random layout and mode, and random operations on it.
func chaosRun(w *workshop, tables map[string]string, seed uint64, end time.Time) {
	random := rand.New(rand.NewPCG(seed, 0))
	c := &chaos{random: random, layout: pick(random, "", "asked.wasm", "asked.py", "passes.wasm", "passes.py"), file: "live.toml"}
	mode := pick(random, "sync", "async")
	w.t.Logf("RLHOST_CHAOS_SEED=%d: %s, %q between", seed, mode, c.layout)
	switch kind, _, _ := strings.Cut(c.layout, "."); kind {
	case "asked":
		c.faults = []string{"fault=1", "at=" + fmt.Sprint(1+random.IntN(9))}
		w.write(c.file, asked(mode, tables[c.layout]))
	case "passes":
		c.faults = []string{"fault=1", "every=" + fmt.Sprint(1+random.IntN(20))}
		w.write(c.file, passed(mode, tables[c.layout]))
	default:
		w.write(c.file, strings.Split(endless(mode), "[plugin.own]")[0])
	}
	if err := os.RemoveAll(w.path("runs")); err != nil {
		w.t.Fatal(err)
	}
	c.subject = w.host(c.file, "--json")
	operations := []func(){c.swapsWell, c.swapsWell, c.swapsBadly, c.goesWrong, c.killsOne, c.pauses, c.scales, c.checkpoints, c.resumes}
	for range chaosOperations {
		operations[random.IntN(len(operations))]()
		c.goesOn()
		c.counts()
		if time.Now().After(end) {
			break
		}
	}
	c.must(control.VerbPause, control.GroupRequest{}, nil)
	c.counts()
	c.must(control.VerbResume, control.GroupRequest{}, nil)
	c.stop()
	if mode == "sync" && !c.lost {
		w.t.Log("nothing was lost: it learned what the undisturbed run does")
		c.learnedWhat("plain.toml")
	}
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// counts checks that every env step is somewhere, and that each that was dropped has a reason.
func (c *chaos) counts() {
	c.t.Helper()
	s := c.until("env steps add up", func(s *control.StatusReply) bool {
		return s.Steps.Made == s.Steps.Trained+s.Steps.Dropped+s.Steps.UnderWay
	}).Steps
	sum := uint64(0)
	for _, n := range s.Reasons {
		sum += n
	}
	if sum != s.Dropped {
		c.t.Errorf("%d env steps were dropped, for reasons %v", s.Dropped, s.Reasons)
	}
	c.lost = c.lost || s.Dropped > 0
}

// asks makes a request, again while another change is under way: a version that was killed on probation falls back meanwhile.
func (c *chaos) asks(verb control.Verb, request, reply any) (err error) {
	c.t.Helper()
	c.soon("it is not busy", func() bool {
		var refused *control.Error
		err = c.client.Do(c.t.Context(), verb, request, reply, nil)
		return !errors.As(err, &refused) || refused.Code != control.CodeBusy
	})
	return err
}

// must makes a request that has to succeed.
func (c *chaos) must(verb control.Verb, request, reply any) {
	c.t.Helper()
	if err := c.asks(verb, request, reply); err != nil {
		c.t.Fatalf("%s %+v: %s\n%s", verb, request, asJSON(err), c.output)
	}
}

// swapsWell brings a component into a process or back.
func (c *chaos) swapsWell() {
	q := control.SwapRequest{Component: pick(c.random, "batcher", "inference", "learner"), File: pick(c.random, "process", "builtin")}
	var r control.SwapReply
	c.must(control.VerbSwap, q, &r)
	c.t.Logf("swap %s to %s: %s", q.Component, q.File, r.Outcome)
	if r.Outcome != control.Committed && r.Outcome != control.Unchanged || r.Dropped != 0 {
		c.t.Errorf("swap %s: %s", asJSON(q), asJSON(r))
	}
}

// swapsBadly asks for environments that cannot be.
func (c *chaos) swapsBadly() {
	q := c.w.swapTo(pick(c.random, "junk.wasm", "trap.wasm"))
	err := c.asks(control.VerbSwap, q, nil)
	c.t.Logf("swap rollout to %s: %v", q.File, err)
	if err == nil {
		c.t.Errorf("%s was taken", q.File)
	}
}

// goesWrong gives what lies between a fault, so that it falls back.
func (c *chaos) goesWrong() {
	if c.layout == "" {
		return
	}
	before := c.status().Swaps.RolledBack
	var sets []string
	for _, f := range c.faults {
		sets = append(sets, "component.between."+f)
	}
	q := c.w.reloadWith(c.file, sets...)
	q.Undo = true // of swaps since, which the file knows nothing of
	err := c.asks(control.VerbReload, q, nil)
	c.t.Logf("between with %v: %v", c.faults, err)
	var refused *control.Error
	switch {
	case errors.As(err, &refused) && refused.Code == control.CodeRolledBack: // it failed before it had taken over
		return
	case err != nil:
		c.t.Fatalf("reload with %v: %v\n%s", c.faults, err, c.output)
	}
	c.until("the previous version runs again", func(s *control.StatusReply) bool { return s.Swaps.RolledBack > before })
}

// killsOne kills one of the run's processes, if it has any. A learner begins again at its newest saved state, which may be some datasets
// old.
func (c *chaos) killsOne() {
	pids := slices.DeleteFunc(c.processes(), func(pid int) bool { return pid == c.cmd.Process.Pid })
	if len(pids) == 0 || c.kills == chaosKills {
		return
	}
	c.kills++
	pid := pick(c.random, pids...)
	s := c.status()
	c.lost = c.lost || instance(&s, "learner").Host == fmt.Sprint("pid ", pid)
	c.t.Logf("kill %d of %v", pid, pids)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		c.t.Fatal(err)
	}
	c.awaitDeath(pid)
}

// pauses makes some or all rest for a while: what they have is counted then.
func (c *chaos) pauses() {
	patterns := pick(c.random, nil, []string{"rollout"}, []string{"inference"}, []string{"learner"}, []string{"batcher"})
	c.t.Logf("pause %v", patterns)
	c.must(control.VerbPause, control.GroupRequest{Patterns: patterns}, nil)
	c.counts()
	c.must(control.VerbResume, control.GroupRequest{}, nil)
}

// scales changes how many rollouts there are. What is made from then on is no longer what it would have been.
func (c *chaos) scales() {
	n := 1 + c.random.IntN(2)
	var r control.ReloadReply
	err := c.asks(control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": n}}, &r)
	c.t.Logf("scale rollout=%d: %v %s", n, err, r.Outcome)
	c.lost = c.lost || r.Outcome == control.Committed
}

func (c *chaos) checkpoints() {
	var r control.CheckpointReply
	c.must(control.VerbCheckpoint, control.CheckpointRequest{}, &r)
	c.t.Logf("checkpoint at %d env steps", r.EnvSteps)
}

// resumes ends the run, or kills it behind a checkpoint, and goes on with it.
func (c *chaos) resumes() {
	if c.random.IntN(2) == 0 {
		c.t.Log("stop and resume")
		c.stop()
	} else {
		c.checkpoints()
		c.t.Log("kill the host and resume")
		c.kill()
		c.nothingLeft()
	}
	c.kills = 0
	c.subject = c.w.host("--json", "--resume", "cartpole")
}
