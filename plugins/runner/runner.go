package runner

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// defaultWindow is the size of the window where the run's stop rule gives none.
const defaultWindow = 100

// Files in the run's folder.
const (
	MetricsFile  = "metrics.jsonl" // with the log jsonl, as episodes.csv
	EpisodesFile = "episodes.csv"
	CSVFile      = "metrics.csv"                // with csv
	EventsFile   = "events.out.tfevents.rlhost" // with tensorboard
)

// config is the component's table.
type config struct {
	Log   []string      `toml:"log"`   // of console, jsonl, csv and tensorboard
	Every time.Duration `toml:"every"` // between two progress lines
}

// Runner watches a run.
type Runner struct {
	out    Output
	screen *Screen
	config config
	h      *component.Host

	returns                     // of the leading policy, which stop rules look at
	others  map[string]*returns // of the other policies, by their names
	naming  policies
	envs    *stat.Gauge // environments of the run
	known   float64     // value of it that the windows know

	// The program reads these: all episodes of the run, and the env steps of its longest.
	episodes  *stat.Counter
	longest   *stat.Gauge
	episodeAt uint64 // env steps that had been learned from when an episode ended last

	made    *stat.Counter // env steps made since the program was started
	offset  int64         // env steps of the run made by earlier programs
	version uint64        // its newest version
	latest  map[string]float64
	beside  row             // what other learners have reported since the last metrics line
	told    map[string]told // of environments, by name
	rate    *stat.Rate      // of env steps made
	began   time.Time       // zero until the loop runs
	wallHad time.Duration   // that the run had taken before

	log      logs
	timers   []*loop.Timer
	stopping bool

	rateEnded bool // reported that the learning rate is 0
	idle      idle // of the leading policy
}

var _ component.Component = (*Runner)(nil)

// New returns a constructor of runners that show progress on out. If out.Out is a *Screen, others may write to that too
// without disturbing the live line.
func New(out Output) func() component.Component {
	out = out.withDefaults()
	screen, ok := out.Out.(*Screen)
	if !ok {
		screen = NewScreen(out.Out)
	}
	return func() component.Component { return &Runner{out: out, screen: screen} }
}

// Manifest lists the ports.
func (c *Runner) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{
		{Name: "on_episodes", Payload: component.PayloadEpisode, Doc: "an episode that has ended"},
		{Name: "on_stats", Payload: component.PayloadStats, Doc: "what one learner round reports"},
	}}
}

// Configure reads the component's table.
func (c *Runner) Configure(decode func(into any) error) error {
	c.config = config{Log: []string{logConsole, logJSONL}, Every: time.Second}
	if err := decode(&c.config); err != nil {
		return err
	}
	for _, name := range c.config.Log {
		if name != logConsole && metricsLogs[name] == nil {
			return &component.ConfigError{Key: "log", Reason: fmt.Sprintf("has %q", name), Help: "use console, jsonl, csv and tensorboard"}
		}
	}
	if c.config.Every < 10*time.Millisecond {
		return &component.ConfigError{Key: "every", Reason: fmt.Sprintf("is %v, want 10ms or more", c.config.Every)}
	}
	return nil
}

// Start posts the first turn. Files are opened when there is something to write.
func (c *Runner) Start(h *component.Host) error {
	if n := h.Peers("runner"); n > 1 {
		return fmt.Errorf("the pipeline has %d runners, want one: they would write the same files", n)
	}
	if h.PolicyOf == nil && (h.Peers("learner") > 1 || len(h.Run.Stop.Policies) > 0) {
		return errors.New("the pipeline has several learners or rules for single policies, and in another process the runner cannot tell those apart: leave its `runtime` out")
	}
	c.h, c.naming, c.others = h, newPolicies(h), map[string]*returns{}
	size := h.Run.Stop.Window
	if size == 0 {
		size = defaultWindow
	}
	c.returns = newReturns(size, h.Stats, func(name string) string { return name })
	c.envs, c.made = h.Stats.Gauge("rollout/envs"), h.Stats.Counter("rollout/env_steps")
	c.episodes = h.Stats.Counter("runner/episodes")
	c.longest = h.Stats.Gauge(component.GaugeLongestEpisode)
	if !c.takesOver() {
		c.offset = -int64(c.made.Value())
	}
	c.publish()
	c.rate = stat.NewRate(time.Minute)
	c.latest, c.beside = make(map[string]float64), newRow()
	c.log = logs{errors: h.Stats.Counter("runner/log_errors"), warn: h.Log}
	if h.Run.Dir != "" {
		c.openLogs(h.Run.Dir)
	}
	h.Slot("on_episodes", c.onEpisode)
	h.Slot("on_stats", c.onStats)
	h.Receiver.Control(loop.Func(c.begin), hostabi.Message{})
	return nil
}

// openLogs names the files in the run's folder, which are made when there is something to write.
func (c *Runner) openLogs(dir string) {
	c.log.metrics = map[string]metricsLog{}
	for _, name := range c.config.Log {
		if open := metricsLogs[name]; open != nil {
			c.log.metrics[name] = open(dir)
		}
	}
	if slices.Contains(c.config.Log, logJSONL) {
		c.log.openEpisodes(filepath.Join(dir, EpisodesFile))
	}
}

// begin starts the clock when the loop runs.
func (c *Runner) begin(*hostabi.Message) {
	c.began = time.Now()
	c.rate.Observe(c.began, float64(c.envStepsMade()))
	c.timers = append(c.timers, c.h.Receiver.Every(c.config.Every, c.tick))
	if wall := c.h.Run.Stop.Wall; wall > 0 {
		c.timers = append(c.timers, c.h.Receiver.After(wall-c.wallHad, func() { c.stop(component.StopWall) }))
	}
	c.syncEnvs()
	c.publish()
	c.eachReturns(func(policy string, r *returns) {
		c.checkReturn(c.naming.beside(policy), r)
		c.checkEnvSteps(c.naming.beside(policy), r)
	})
}

func (c *Runner) tick() {
	c.rate.Observe(time.Now(), float64(c.envStepsMade()))
	c.log.flushEpisodes()
	c.show()
}

// envStepsMade returns the env steps that this run has made, those before a resume included.
func (c *Runner) envStepsMade() uint64 { return uint64(int64(c.made.Value()) + c.offset) }

// wall returns the time that this run has taken, the time before a resume included.
func (c *Runner) wall() time.Duration {
	if c.began.IsZero() {
		return c.wallHad
	}
	return c.wallHad + time.Since(c.began)
}

// syncEnvs passes the number of environments to the windows.
func (c *Runner) syncEnvs() {
	n := c.envs.Value()
	if n == c.known || n < 0 || n > maxWindowEnvs {
		return
	}
	c.known = n
	c.eachReturns(func(_ string, r *returns) { r.window.SetEnvs(int(n)) })
	c.syncActing()
}

// syncActing tells the windows in how many environments their policies act.
func (c *Runner) syncActing() {
	if c.h.ActsIn != nil && c.h.Run.Policy != "" {
		c.eachReturns(func(policy string, r *returns) { r.window.SetActing(c.h.ActsIn(policy)) })
	}
}

// eachReturns calls fn with what is known of each policy's episodes.
func (c *Runner) eachReturns(fn func(policy string, r *returns)) {
	fn(c.h.Run.Policy, &c.returns)
	for policy, r := range c.others {
		fn(policy, r)
	}
}

// takesOver reports whether another runner of this process was replaced by this one.
func (c *Runner) takesOver() bool { return c.h.Inherited != nil }

// onEpisode adds an episode to the window and applies the rule on returns.
func (c *Runner) onEpisode(m *hostabi.Message) {
	e := trajectory.EpisodeOf(m)
	c.syncEnvs()
	if e.Env >= maxWindowEnvs {
		c.log.report(fmt.Errorf("episode of environment %d: no run has as many", e.Env))
		return
	}
	policy, ok := c.naming.acted(m, e)
	c.log.episode(c.envStepsMade(), played{e, c.nameOf(policy, ok), m.PolicyVersion})
	c.episodes.Inc()
	c.episodeAt = c.trained
	c.longest.Set(max(c.longest.Value(), float64(e.Length)))
	if !ok {
		return
	}
	if policy == "" {
		c.idle.ended(e, c.trained)
	}
	r := c.returnsOf(policy)
	if r.count(e) {
		c.h.Log.Info("the window of returns begins anew with the episodes of the new environments", "task", e.Task)
	}
	r.publish()
	c.checkReturn(policy, r)
}

// nameOf returns the name of a policy, which is empty for the leading one; none for one that is not known.
func (c *Runner) nameOf(policy string, known bool) string {
	if !known {
		return ""
	}
	return cmp.Or(policy, c.h.Run.Policy)
}

// checkReturn ends the run where the mean return of a policy does; its name is empty for the leading one.
func (c *Runner) checkReturn(policy string, r *returns) {
	rule, own := c.rules(policy)
	for _, least := range []*float64{rule.Return, own.Return} {
		if mean := r.window.Mean(); least != nil && !c.stopping && r.window.Full() && mean >= *least {
			c.h.Stats.Gauge(c.named(policy, component.GaugeReachedReturn)).Set(mean)
			c.stop(component.StopReturn)
		}
	}
}

// checkEnvSteps ends the run where what a policy has learned from does; its name is empty for the leading one.
func (c *Runner) checkEnvSteps(policy string, r *returns) {
	rule, own := c.rules(policy)
	if rule.EnvSteps > 0 && r.trained >= rule.EnvSteps {
		c.stop(component.StopEnvSteps)
	}
	if own.EnvSteps > 0 && r.trained >= own.EnvSteps && !c.stopping {
		c.h.Stats.Gauge(c.named(policy, component.GaugeReachedSteps)).Set(float64(r.trained))
		c.stop(component.StopEnvSteps)
	}
}

// rules returns what run.stop asks of a policy: itself, which is of the leading one alone, and by the policy's name.
func (c *Runner) rules(policy string) (rule, own component.PolicyRule) {
	stop := &c.h.Run.Stop
	if policy == "" {
		rule = component.PolicyRule{Return: stop.Return, EnvSteps: stop.EnvSteps}
	}
	return rule, stop.Policies[c.nameOf(policy, true)]
}

// named returns what a number of a policy is called.
func (c *Runner) named(policy, name string) string {
	if policy == "" {
		return name
	}
	return component.OfPolicy(policy, name)
}

func (c *Runner) stop(reason component.StopReason) {
	if c.stopping {
		return
	}
	c.stopping = true
	c.h.Stop(reason)
}

// onStats takes the report of a learner round, writes the metrics line and applies the rule on env steps. What another learner than
// that of the leading policy reports waits for the next line.
func (c *Runner) onStats(m *hostabi.Message) {
	names, values, err := c.readStats(m.Handle)
	if err != nil {
		c.log.report(fmt.Errorf("learner's stats %v: %w", m.Handle, err))
		return
	}
	if policy := c.naming.of(m); policy != "" {
		for i, name := range names {
			c.beside.set(component.OfPolicy(policy, name), values[i])
		}
		if _, asked := c.h.Run.Stop.Policies[policy]; asked {
			r := c.returnsOf(policy)
			r.learned(names, values)
			c.checkEnvSteps(policy, r)
		}
		return
	}
	for i, name := range names {
		c.latest[name] = values[i]
	}
	c.learned(names, values)
	c.version = m.PolicyVersion
	c.syncActing() // a policy may act in other environments than before
	c.log.flushEpisodes()
	c.writeMetrics(names, values)
	c.checkEnvSteps("", &c.returns)
	c.checkRate()
	c.warnOfIdleness()
}

// checkRate reports once that a schedule has ended before the run: further training changes nothing.
func (c *Runner) checkRate() {
	if rate, ok := c.latest["charts/learning_rate"]; !ok || rate != 0 || c.stopping || c.rateEnded {
		return
	}
	c.rateEnded = true
	c.h.Log.Warn("the learning rate has reached 0: nothing more is learned", "env_steps", c.trained, "help",
		"component.learner.anneal_env_steps says when it does, run.stop.env_steps when the run ends")
}

// Stop shows the last state and closes the files. The loop has ended.
func (c *Runner) Stop() error {
	for _, t := range c.timers {
		t.Stop()
	}
	if c.h == nil {
		return nil
	}
	if !c.began.IsZero() {
		c.rate.Observe(time.Now(), float64(c.envStepsMade()))
		c.show()
	}
	c.screen.Leave()
	c.log.flushEpisodes()
	return c.log.close()
}
