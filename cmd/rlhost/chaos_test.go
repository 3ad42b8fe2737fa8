package main

import (
	"context"
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
const chaosKills = 4

// standstill is how long a run may stand still before it has to say why: its detector needs 5 s of them.
const standstill = 15 * time.Second

// chaos is a run that random operations are made on.
type chaos struct {
	*subject
	shop   *workshop
	random *rand.Rand
	layout string   // components between rollout and learner: a row of newWrongShop's tables; or poolLayout, or nothing
	file   string   // of the pipeline
	plain  string   // of the same without the components between
	run    string   // its name
	swaps  []string // components that can be in a process
	envs   []string // that the rollout can change between; nil: it keeps its own, so that a synchronous run's learning can be compared
	faults []string // of the components between, as overrides
	kills  int
	base   uint64 // env steps learned from before the process that runs now
	lost   bool   // env steps were dropped, or others are made than without the operations
}

// poolLayout is a run of self-play against earlier versions.
const poolLayout = "pool"

// chaosEnvs are the environments of a run of CartPole, one for each runtime, as `use`.
var chaosEnvs = []string{"cartpole@1", "./" + oldVersion, "./" + newVersion, "own:cartpole@1"}

// Random swaps, good and bad ones, kills, pauses, scalings, checkpoints and resumes, synchronously and asynchronously, with components and
// environments in the host, in sandboxes and in processes: the run continues after each, a stall says why, env steps add up, in a paused run
// their count as trained equals the learner's own, and a synchronous run that has lost nothing learns the same as the undisturbed one.
// RLHOST_CHAOS is how many minutes it takes, RLHOST_CHAOS_SEED the seed of a run to repeat.
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
	w.another()
	w.write("junk.wasm", "no module")
	w.copy("trap.wasm", faultyGuests+"/trap.wasm")
	w.copy(oldVersion, "../../examples/plugins/cartpole-c/cartpole.wasm")
	w.copy(newVersion, "../../examples/plugins/cartpole-rust/cartpole.wasm")
	w.copy("four.wasm", "../../examples/plugins/connectfour-c/connectfour.wasm")
	runs, made := 0, 0
	for end := time.Now().Add(time.Duration(minutes * float64(time.Minute))); time.Now().Before(end) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { made += chaosRun(w.of(t), tables, seed, end) })
		runs++
		if err == nil {
			break
		}
	}
	t.Logf("%d runs, %d operations", runs, made)
}

// newChaos writes a pipeline of random layout and mode.
func newChaos(w *workshop, tables map[string]string, random *rand.Rand) (c *chaos, mode string) {
	c = &chaos{shop: w, random: random, layout: pick(random, "", poolLayout, "asked.wasm", "asked.py", "passes.wasm", "passes.py"), file: "live.toml", plain: "plain.toml",
		run: "cartpole", swaps: swapped, envs: pick(random, nil, chaosEnvs)}
	mode = pick(random, "sync", "async")
	if c.layout == poolLayout {
		text := strings.NewReplacer("16_384", "500_000_000", "episodes = 4", "episodes = 1", `"sync"`, strconv.Quote(mode), "[policy.main]", "[swap]\ntrial_envs = 0\nprobation = \"0s\"\n[policy.main]",
			"[component.rollout]", "[component.learner]\nlr_anneal_env_steps = 500_000\n[component.rollout]").Replace(selfPlayFile)
		c.plain, c.run, c.swaps = c.file, "four", []string{"batcher", "inference", "inference_past", "learner"}
		if c.envs != nil {
			c.envs = []string{"connectfour@1", "./four.wasm"}
		}
		w.write(c.file, text)
		return c, mode
	}
	env := pick(random, chaosEnvs...)
	isolated := pick(random, "", "", "\nruntime = \"process\"")
	if !strings.HasSuffix(env, ".wasm") {
		isolated = ""
	}
	own := "[plugin.own]\npath = \"./second/rlhost\"\nargs = [\"plugin\", \"serve\"]\n"
	with := func(text string) string {
		return strings.Replace(text, `use = "cartpole@1"`, "use = \""+env+"\""+isolated, 1) + own
	}
	w.write(c.plain, with(strings.Split(endless("sync"), "[plugin.own]")[0]))
	switch kind, _, _ := strings.Cut(c.layout, "."); kind {
	case "asked":
		c.faults = []string{"fault=1", "at=" + fmt.Sprint(1+random.IntN(9))}
		w.write(c.file, with(asked(mode, tables[c.layout])))
	case "passes":
		c.faults = []string{"fault=1", "every=" + fmt.Sprint(1+random.IntN(20))}
		w.write(c.file, with(passed(mode, tables[c.layout])))
	default:
		w.write(c.file, with(strings.Split(endless(mode), "[plugin.own]")[0]))
	}
	w.t.Logf("environments of %s%s", env, strings.TrimSpace(isolated))
	return c, mode
}

// chaosRun makes a run of random layout and mode, and random operations on it; it returns how many.
func chaosRun(w *workshop, tables map[string]string, seed uint64, end time.Time) (made int) {
	random := rand.New(rand.NewPCG(seed, 0))
	c, mode := newChaos(w, tables, random)
	w.t.Logf("RLHOST_CHAOS_SEED=%d: %s, %q between", seed, mode, c.layout)
	if err := os.RemoveAll(w.path("runs")); err != nil {
		w.t.Fatal(err)
	}
	c.begins(c.file, "--json")
	operations := []func(){c.swapsWell, c.swapsWell, c.swapsEnvs, c.swapsBadly, c.goesWrong, c.reloads, c.killsOne, c.killsOne, c.pauses, c.scales, c.checkpoints, c.resumes}
	for made < chaosOperations && time.Now().Before(end) {
		operations[random.IntN(len(operations))]()
		c.goesOn()
		c.counts()
		made++
	}
	c.pausesAll()
	c.stop()
	if mode == "sync" && !c.lost {
		w.t.Log("nothing was lost: it learned what the undisturbed run does")
		c.learnedWhat(c.plain)
	}
	return made
}

// begins starts the program, and has it watched until it ends.
func (c *chaos) begins(args ...string) {
	c.shop.t.Helper()
	c.subject = c.shop.host(args...)
	j, client, over := c.subject, c.dial(), make(chan struct{})
	go func() {
		defer close(over)
		j.watched(client)
	}()
	c.t.Cleanup(func() {
		j.kill()
		<-over
	})
}

// watched checks until the process has ended that it never stalls without saying why.
func (j *subject) watched(client *control.Client) {
	var before control.StepCounts
	since := time.Now()
	for {
		select {
		case <-j.ended:
			return
		case <-time.After(time.Second):
		}
		var s control.StatusReply
		if client.Do(context.Background(), control.VerbStatus, control.StatusRequest{}, &s, nil) != nil {
			continue // it ends
		}
		if s.Steps.Made != before.Made || s.Steps.Trained != before.Trained || s.State != control.Running || s.Transition != "" || s.Cause != "" {
			before, since = s.Steps, time.Now()
		}
		if time.Since(since) > standstill {
			j.t.Errorf("stands still for %v without a cause: %s\n%s", time.Since(since), asJSON(s), j.output)
			return
		}
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
	c.lost = c.lost || s.Dropped > s.Reasons["not_learned"]
}

// pausesAll pauses everything: the count of trained env steps then equals the learner's own.
func (c *chaos) pausesAll() {
	var all control.GroupReply
	c.within("nothing else is being changed", func() bool {
		all = control.GroupReply{}
		c.must(control.VerbPause, control.GroupRequest{}, &all)
		return !slices.ContainsFunc(all.Answers, func(a control.Answer) bool { return a.Error != nil && a.Error.Code == control.CodeBusy })
	})
	for _, a := range all.Answers {
		if a.State != control.Paused {
			c.t.Errorf("%s does not come to rest: %s", a.Name, asJSON(all))
		}
	}
	c.counts()
	var r control.CheckpointReply
	c.must(control.VerbCheckpoint, control.CheckpointRequest{}, &r)
	if s := c.status().Steps; c.base+s.Trained != r.EnvSteps {
		c.t.Errorf("%d env steps count as trained, after %d before, the learner has learned from %d: %s", s.Trained, c.base, r.EnvSteps, asJSON(s))
	}
	c.must(control.VerbUnpause, control.GroupRequest{}, nil)
}

// asks makes a request, again while another change is under way: a version that was killed on probation falls back meanwhile.
func (c *chaos) asks(verb control.Verb, request, reply any) (err error) {
	c.t.Helper()
	c.within("it is not busy", func() bool {
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
	q := control.SwapRequest{Component: pick(c.random, c.swaps...), File: pick(c.random, "process", "builtin")}
	var r control.SwapReply
	err := c.asks(control.VerbSwap, q, &r)
	c.t.Logf("swap %s to %s: %s %v", q.Component, q.File, r.Outcome, err)
	switch {
	case nests(err):
	case err != nil:
		c.t.Errorf("swap %s: %s", asJSON(q), asJSON(err))
	case r.Outcome != control.Committed && r.Outcome != control.Unchanged || r.Dropped != 0:
		c.t.Errorf("swap %s: %s", asJSON(q), asJSON(r))
	}
}

// swapsEnvs changes to environments that do the same elsewhere, at a random boundary.
func (c *chaos) swapsEnvs() {
	if c.envs == nil {
		return
	}
	q := c.w.swapTo(pick(c.random, c.envs...))
	q.At = pick(c.random, "", "step", "trajectory", "episode", "now")
	if c.random.IntN(2) == 0 {
		q.KeepState = new(c.random.IntN(2) == 0)
	}
	var r control.SwapReply
	err := c.asks(control.VerbSwap, q, &r)
	c.t.Logf("swap %s: %s %v", asJSON(q), r.Outcome, err)
	if err != nil && !nests(err) {
		c.t.Errorf("swap %s: %s", asJSON(q), asJSON(err))
	}
	c.lost = c.lost || r.Outcome == control.Committed
}

// nests reports whether the request was for a process within a process: programs' environments need a rollout in the host.
func nests(err error) bool {
	var refused *control.Error
	return errors.As(err, &refused) && strings.Contains(refused.Reason, "in the process of a component: not supported")
}

// swapsBadly makes impossible requests.
func (c *chaos) swapsBadly() {
	if c.random.IntN(3) == 0 {
		err := c.asks(control.VerbScale, control.ScaleRequest{Components: map[string]int{"learner": 2}}, nil)
		c.t.Logf("scale learner=2: %v", err)
		if err == nil {
			c.t.Error("two learners of one policy were taken")
		}
		return
	}
	q := c.w.swapTo(pick(c.random, "junk.wasm", "trap.wasm"))
	if strings.HasSuffix(c.layout, ".wasm") {
		q.Component = pick(c.random, "rollout", "between")
	}
	err := c.asks(control.VerbSwap, q, nil)
	c.t.Logf("swap %s to %s: %v", q.Component, q.File, err)
	if err == nil {
		c.t.Errorf("%s was taken", q.File)
	}
}

// reloads makes the run follow its file, with components of another program or none.
func (c *chaos) reloads() {
	var sets []string
	if c.layout != poolLayout && c.random.IntN(4) > 0 {
		sets = append(sets, "component."+pick(c.random, "batcher", "inference", "learner")+".plugin=own")
	}
	c.reloadsWith(sets)
}

// reloadsWith is a reload that undoes changes that the file does not have, also of environments.
func (c *chaos) reloadsWith(sets []string) error {
	var r control.ReloadReply
	err := c.asks(control.VerbReload, c.w.reloadWith(c.file, sets...), &r)
	c.t.Logf("reload with %v: %s %v", sets, r.Outcome, err)
	var refused *control.Error
	if err != nil && !(errors.As(err, &refused) && refused.Code == control.CodeRolledBack) {
		c.t.Fatalf("reload with %v: %s\n%s", sets, asJSON(err), c.output)
	}
	return err
}

// goesWrong gives a component between a fault, so that it falls back.
func (c *chaos) goesWrong() {
	if c.faults == nil {
		return
	}
	before := c.status().Swaps.RolledBack
	var sets []string
	for _, f := range c.faults {
		sets = append(sets, "component.between."+f)
	}
	if c.reloadsWith(sets) != nil {
		return // it failed before it had taken over
	}
	c.until("the previous version runs again", func(s *control.StatusReply) bool { return s.Swaps.RolledBack > before })
}

// killsOne kills one of the run's processes, if it has any. A learner begins again at its newest saved state, which may be some datasets
// old, and environments lose the step that they are in; others' unfinished messages go to their successors.
func (c *chaos) killsOne() {
	pids := slices.DeleteFunc(c.processes(), func(pid int) bool { return pid == c.cmd.Process.Pid })
	if len(pids) == 0 || c.kills == chaosKills {
		return
	}
	c.kills++
	pid := pick(c.random, pids...)
	s, of := c.status(), ""
	for i := range s.Components {
		if s.Components[i].Host == fmt.Sprint("pid ", pid) {
			of = s.Components[i].Name
		}
	}
	c.lost = c.lost || of == "" || of == "learner" || strings.HasPrefix(of, "rollout")
	c.t.Logf("kill %d of %v: %q", pid, pids, of)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		c.t.Fatal(err)
	}
	c.awaitDeath(pid)
}

// pauses pauses some or all for a while: their env steps are counted then.
func (c *chaos) pauses() {
	if c.random.IntN(3) == 0 {
		c.t.Log("pause everything")
		c.pausesAll()
		return
	}
	patterns := pick(c.random, []string{"rollout"}, []string{"inference"}, []string{"learner"}, []string{"batcher"})
	c.t.Logf("pause %v", patterns)
	c.must(control.VerbPause, control.GroupRequest{Patterns: patterns}, nil)
	c.counts()
	c.must(control.VerbUnpause, control.GroupRequest{}, nil)
}

// scales changes how many rollouts there are. The run's data then differs from the undisturbed one's.
func (c *chaos) scales() {
	n := 1 + c.random.IntN(2)
	var r control.ReloadReply
	err := c.asks(control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": n}}, &r)
	c.t.Logf("scale rollout=%d: %v %s", n, err, r.Outcome)
	c.lost = c.lost || r.Outcome == control.Committed
}

func (c *chaos) checkpoints() {
	c.t.Logf("checkpoint at %d env steps", c.saves())
}

// saves returns how many env steps the checkpoint that it asks for has.
func (c *chaos) saves() uint64 {
	var r control.CheckpointReply
	c.must(control.VerbCheckpoint, control.CheckpointRequest{}, &r)
	return r.EnvSteps
}

// resumes ends the run, or kills it after a checkpoint, and resumes it.
func (c *chaos) resumes() {
	if c.random.IntN(2) == 0 {
		c.t.Log("stop and resume")
		c.stop()
		c.base = c.end().EnvSteps
	} else {
		c.t.Log("kill the host and resume")
		c.base = c.saves()
		c.kill()
		c.nothingLeft()
	}
	c.kills = 0
	c.begins("--json", "--resume", c.run)
}
