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
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/plugins/runner/prometheus"

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
	Log    []string      `toml:"log" doc:"Logs of the run." range:"console, jsonl, csv, tensorboard, wandb, mlflow, prometheus"`
	Listen string        `toml:"listen" doc:"Where Prometheus finds the metrics, at the path /metrics; port 0 takes any that is free." example:"127.0.0.1:9464"`
	Every  time.Duration `toml:"every" doc:"Time between two progress lines."`
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

	learns  bool          // something is learned: env steps count when they have been learned from
	made    *stat.Counter // env steps made since the program was started
	offset  int64         // env steps of the run made by earlier programs
	version uint64        // its newest version
	latest  map[string]float64
	beside  row             // other learners' reports since the last metrics line
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
func (rn *Runner) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{
		{Name: "on_episodes", Payload: component.PayloadEpisode, Doc: "an episode that has ended"},
		{Name: "on_stats", Payload: component.PayloadStats, Doc: "what one learner round reports"},
	}}
}

// Configure reads the component's table.
func (rn *Runner) Configure(decode func(into any) error) error {
	rn.config = config{Log: []string{logConsole, logJSONL}, Every: time.Second}
	if err := decode(&rn.config); err != nil {
		return err
	}
	for _, name := range rn.config.Log {
		if name != logConsole && name != logPrometheus && metricsLogs[name] == nil && !slices.Contains(trackers, name) {
			return &component.ConfigError{Key: "log", Reason: fmt.Sprintf("has %q", name), Help: "use console, jsonl, csv, tensorboard, wandb, mlflow and prometheus"}
		}
	}
	var err error
	if rn.config.Listen, err = listenAddress(rn.config.Listen, slices.Contains(rn.config.Log, logPrometheus)); err != nil {
		return err
	}
	if rn.config.Every < 10*time.Millisecond {
		return &component.ConfigError{Key: "every", Reason: fmt.Sprintf("is %v, want 10ms or more", rn.config.Every)}
	}
	return nil
}

// Start posts the first turn. Files are opened when there is something to write.
func (rn *Runner) Start(h *component.Host) error {
	if n := h.Peers("runner"); n > 1 {
		return fmt.Errorf("the pipeline has %d runners, want one: they would write the same files", n)
	}
	if h.PolicyOf == nil && (h.Peers("learner") > 1 || len(h.Run.Stop.Policies) > 0) {
		return errors.New("the pipeline has several learners or rules for single policies, and in another process the runner cannot tell those apart: leave its `runtime` out")
	}
	rn.h, rn.naming, rn.others = h, newPolicies(h), map[string]*returns{}
	size := h.Run.Stop.Window
	if size == 0 {
		size = defaultWindow
	}
	rn.learns = h.Peers("learner") > 0
	rn.returns = newReturns(size, h.Stats, func(name string) string { return name })
	rn.envs, rn.made = h.Stats.Gauge("rollout/envs"), h.Stats.Counter("rollout/env_steps")
	rn.episodes = h.Stats.Counter("runner/episodes")
	rn.longest = h.Stats.Gauge(component.GaugeLongestEpisode)
	if !rn.takesOver() {
		rn.offset = -int64(rn.made.Value())
	}
	rn.publish()
	rn.rate = stat.NewRate(time.Minute)
	rn.latest, rn.beside = make(map[string]float64), newRow()
	rn.log = logs{errors: h.Stats.Counter("runner/log_errors"), warn: h.Log}
	if h.Run.Dir != "" {
		if err := rn.openLogs(h.Run.Dir); err != nil {
			return err
		}
	}
	h.Slot("on_episodes", rn.onEpisode)
	h.Slot("on_stats", rn.onStats)
	h.Receiver.Control(loop.Func(rn.begin), hostabi.Message{})
	return nil
}

// openLogs names the files in the run's folder, which are made when there is something to write, and serves the metrics.
func (rn *Runner) openLogs(dir string) error {
	rn.log.metrics = map[string]metricsLog{}
	for _, name := range rn.config.Log {
		if open := metricsLogs[name]; open != nil {
			rn.log.metrics[name] = open(dir)
			if e, ok := rn.log.metrics[name].(*events); ok {
				e.keys = rn.out.Keys
			}
		} else if slices.Contains(trackers, name) {
			rn.log.metrics[name] = &tracker{name: name, python: cmp.Or(rn.out.Python, "python3"), dir: dir}
		}
	}
	if slices.Contains(rn.config.Log, logJSONL) {
		rn.log.openEpisodes(filepath.Join(dir, EpisodesFile))
	}
	if rn.config.Listen == "" {
		return nil
	}
	run := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
	s, err := newScraped(prometheus.New(run, rn.h.Run.Policy, rn.h.Stats), rn.config.Listen, rn.h.Log, rn.takesOver())
	if err == nil {
		rn.log.metrics[logPrometheus] = s
	}
	return err
}

// begin starts the clock when the loop runs.
func (rn *Runner) begin(*hostabi.Message) {
	rn.began = time.Now()
	rn.rate.Observe(rn.began, float64(rn.envStepsMade()))
	rn.timers = append(rn.timers, rn.h.Receiver.Every(rn.config.Every, rn.tick))
	if wall := rn.h.Run.Stop.WallTime; wall > 0 {
		rn.timers = append(rn.timers, rn.h.Receiver.After(wall-rn.wallHad, func() { rn.stop(component.StopWallTime) }))
	}
	rn.syncEnvs()
	rn.publish()
	rn.eachReturns(func(policy string, r *returns) {
		rn.checkReturn(rn.naming.beside(policy), r)
		rn.checkEnvSteps(rn.naming.beside(policy), r)
	})
}

func (rn *Runner) tick() {
	rn.rate.Observe(time.Now(), float64(rn.envStepsMade()))
	rn.log.flushEpisodes()
	if rn.learns = rn.h.Peers("learner") > 0; !rn.learns {
		rn.writeMetrics(nil, nil)
	}
	rn.show()
}

// counted returns the env steps by which the run counts: those learned from, or made where nothing is learned.
func (rn *Runner) counted() uint64 {
	if rn.learns {
		return rn.trained
	}
	return rn.envStepsMade()
}

// envStepsMade returns the env steps that this run has made, before a resume too.
func (rn *Runner) envStepsMade() uint64 { return uint64(int64(rn.made.Value()) + rn.offset) }

// wall returns the time that this run has taken, the time before a resume included.
func (rn *Runner) wall() time.Duration {
	if rn.began.IsZero() {
		return rn.wallHad
	}
	return rn.wallHad + time.Since(rn.began)
}

// syncEnvs passes the number of environments to the windows.
func (rn *Runner) syncEnvs() {
	n := rn.envs.Value()
	if n == rn.known || n < 0 || n > maxWindowEnvs {
		return
	}
	rn.known = n
	rn.eachReturns(func(_ string, r *returns) { r.window.SetEnvs(int(n)) })
	rn.syncActing()
}

// syncActing sets in how many environments the windows' policies act.
func (rn *Runner) syncActing() {
	if rn.h.ActsIn != nil && rn.h.Run.Policy != "" {
		rn.eachReturns(func(policy string, r *returns) { r.window.SetActing(rn.h.ActsIn(policy)) })
	}
}

// eachReturns calls fn with each policy's returns.
func (rn *Runner) eachReturns(fn func(policy string, r *returns)) {
	fn(rn.h.Run.Policy, &rn.returns)
	for policy, r := range rn.others {
		fn(policy, r)
	}
}

// takesOver reports whether another runner of this process was replaced by this one.
func (rn *Runner) takesOver() bool { return rn.h.Inherited != nil }

// onEpisode adds an episode to the window and applies the rule on returns.
func (rn *Runner) onEpisode(m *hostabi.Message) {
	e := trajectory.EpisodeOf(m)
	rn.syncEnvs()
	if e.Env >= maxWindowEnvs {
		rn.log.report(fmt.Errorf("episode of environment %d: no run has as many", e.Env))
		return
	}
	policy, ok := rn.naming.acted(m, e)
	rn.log.episode(rn.envStepsMade(), played{e, rn.nameOf(policy, ok), m.PolicyVersion, tape.Life(rn.h.Run.Resumes, int(e.Begun))})
	rn.episodes.Inc()
	rn.episodeAt = rn.counted()
	rn.longest.Set(max(rn.longest.Value(), float64(e.Length)))
	if !ok {
		return
	}
	if policy == "" {
		rn.idle.ended(e, rn.trained)
	}
	r := rn.returnsOf(policy)
	if r.count(e) {
		rn.h.Log.Info("the window of returns restarts with the episodes of the new environments", "task", e.Task)
	}
	r.publish()
	rn.checkReturn(policy, r)
}

// nameOf returns the name of a policy, which is empty for the leading one; none for an unknown policy.
func (rn *Runner) nameOf(policy string, known bool) string {
	if !known {
		return ""
	}
	return cmp.Or(policy, rn.h.Run.Policy)
}

// checkReturn ends the run where the mean return of a policy does; its name is empty for the leading one.
func (rn *Runner) checkReturn(policy string, r *returns) {
	rule, own := rn.rules(policy)
	for _, least := range []*float64{rule.Return, own.Return} {
		if mean := r.window.Mean(); least != nil && !rn.stopping && r.window.Full() && mean >= *least {
			rn.h.Stats.Gauge(rn.named(policy, component.GaugeReachedReturn)).Set(mean)
			rn.stop(component.StopReturn)
		}
	}
}

// checkEnvSteps ends the run when a policy has learned from enough env steps; its name is empty for the leading one.
func (rn *Runner) checkEnvSteps(policy string, r *returns) {
	rule, own := rn.rules(policy)
	if rule.EnvSteps > 0 && r.trained >= rule.EnvSteps {
		rn.stop(component.StopEnvSteps)
	}
	if own.EnvSteps > 0 && r.trained >= own.EnvSteps && !rn.stopping {
		rn.h.Stats.Gauge(rn.named(policy, component.GaugeReachedSteps)).Set(float64(r.trained))
		rn.stop(component.StopEnvSteps)
	}
}

// rules returns the rules of run.stop for a policy: its own keys, for the leading one alone, and its entry under the policy's name.
func (rn *Runner) rules(policy string) (rule, own component.PolicyRule) {
	stop := &rn.h.Run.Stop
	if policy == "" {
		rule = component.PolicyRule{Return: stop.Return, EnvSteps: stop.EnvSteps}
	}
	return rule, stop.Policies[rn.nameOf(policy, true)]
}

// named returns the name of a policy's number.
func (rn *Runner) named(policy, name string) string {
	if policy == "" {
		return name
	}
	return component.OfPolicy(policy, name)
}

func (rn *Runner) stop(reason component.StopReason) {
	if rn.stopping {
		return
	}
	rn.stopping = true
	rn.h.Stop(reason)
}

// onStats takes the report of a learner round, writes the metrics line and applies the rule on env steps. The report of another
// policy's learner waits for the next line.
func (rn *Runner) onStats(m *hostabi.Message) {
	names, values, err := rn.readStats(m.Handle)
	if err != nil {
		rn.log.report(fmt.Errorf("learner's stats %v: %w", m.Handle, err))
		return
	}
	if policy := rn.naming.of(m); policy != "" {
		for i, name := range names {
			rn.beside.set(component.OfPolicy(policy, name), values[i])
		}
		if _, asked := rn.h.Run.Stop.Policies[policy]; asked {
			r := rn.returnsOf(policy)
			r.learned(names, values)
			rn.checkEnvSteps(policy, r)
		}
		return
	}
	for i, name := range names {
		rn.latest[name] = values[i]
	}
	rn.learned(names, values)
	rn.version = m.PolicyVersion
	rn.syncActing() // a policy may act in other environments than before
	rn.log.flushEpisodes()
	rn.writeMetrics(names, values)
	rn.checkEnvSteps("", &rn.returns)
	rn.checkRate()
	rn.warnOfIdleness()
}

// checkRate reports once that a schedule has ended before the run: further training changes nothing.
func (rn *Runner) checkRate() {
	if rate, ok := rn.latest["charts/learning_rate"]; !ok || rate != 0 || rn.stopping || rn.rateEnded {
		return
	}
	rn.rateEnded = true
	rn.h.Log.Warn("the learning rate has reached 0: nothing more is learned", "env_steps", rn.trained, "help",
		"component.learner.lr_anneal_env_steps says when it does, run.stop.env_steps when the run ends")
}

// Stop shows the last state, if there is anything to show, and closes the files. The loop has ended.
func (rn *Runner) Stop() error {
	for _, t := range rn.timers {
		t.Stop()
	}
	if rn.h == nil {
		return nil
	}
	if !rn.began.IsZero() {
		rn.rate.Observe(time.Now(), float64(rn.envStepsMade()))
		if !rn.learns {
			rn.writeMetrics(nil, nil)
		}
		if rn.out.JSON || rn.trained > 0 || rn.envStepsMade() > 0 {
			rn.show()
		}
	}
	rn.screen.Leave()
	rn.log.flushEpisodes()
	return rn.log.close()
}
