package runner

import (
	"fmt"
	"math"
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

	window *Window
	task   uint16      // of the episodes in the window
	envs   *stat.Gauge // environments of the run
	known  float64     // value of it that the window knows

	// The program reads these: the window's mean, NaN while it is not full, and all episodes of the run.
	meanReturn *stat.Gauge
	meanLength *stat.Gauge
	episodes   *stat.Counter
	longest    *stat.Gauge

	made    *stat.Counter // env steps made since the program was started
	offset  int64         // env steps of the run made by earlier programs
	trained uint64        // env steps learned from
	version uint64        // newest policy version
	latest  map[string]float64
	told    map[string]told // of environments, by name
	rate    *stat.Rate      // of env steps made
	began   time.Time       // zero until the loop runs
	wallHad time.Duration   // that the run had taken before

	log      logs
	timers   []*loop.Timer
	stopping bool

	rateEnded bool // reported that the learning rate is 0
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
	c.h = h
	size := h.Run.Stop.Window
	if size == 0 {
		size = defaultWindow
	}
	c.window = NewWindow(size)
	c.envs, c.made = h.Stats.Gauge("rollout/envs"), h.Stats.Counter("rollout/env_steps")
	c.meanReturn, c.meanLength = h.Stats.Gauge(component.GaugeMeanReturn), h.Stats.Gauge("charts/episodic_length")
	c.episodes = h.Stats.Counter("runner/episodes")
	c.longest = h.Stats.Gauge(component.GaugeLongestEpisode)
	if !c.takesOver() {
		c.offset = -int64(c.made.Value())
	}
	c.publish()
	c.rate = stat.NewRate(time.Minute)
	c.latest = make(map[string]float64)
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
		c.log.episodes = &logFile{path: filepath.Join(dir, EpisodesFile), header: []byte(episodesHeader), whole: wholeLines}
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
	c.checkReturn()
	c.checkEnvSteps()
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

// syncEnvs passes the number of environments to the window.
func (c *Runner) syncEnvs() {
	if n := c.envs.Value(); n != c.known && n >= 0 && n <= maxWindowEnvs {
		c.known = n
		c.window.SetEnvs(int(n))
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
	c.log.episode(c.envStepsMade(), e)
	c.episodes.Inc()
	c.longest.Set(max(c.longest.Value(), float64(e.Length)))
	c.count(e)
	c.publish()
	c.checkReturn()
}

// count adds an episode to the window. The first of a new task restarts it: returns under another reward are not
// comparable. Late ones of an old task and those of a trial are left out.
func (c *Runner) count(e trajectory.Episode) {
	newer := int16(e.Task - c.task) // task numbers wrap after 65,535
	if e.Task == trajectory.TrialTask || newer < 0 {
		c.window.Pass()
		return
	}
	if newer > 0 {
		c.task = e.Task
		c.window.Clear()
		c.h.Log.Info("the window of returns begins anew with the episodes of the new environments", "task", e.Task)
	}
	c.window.Push(e)
}

// publish makes the window's numbers visible to the rest of the program.
func (c *Runner) publish() {
	mean := math.NaN()
	if c.window.Full() {
		mean = c.window.Mean()
	}
	c.meanReturn.Set(mean)
	c.meanLength.Set(c.window.MeanLength())
}

func (c *Runner) checkReturn() {
	rule := c.h.Run.Stop
	if mean := c.window.Mean(); rule.HasReturn && !c.stopping && c.window.Full() && mean >= rule.Return {
		c.h.Stats.Gauge(component.GaugeReachedReturn).Set(mean)
		c.stop(component.StopReturn)
	}
}

func (c *Runner) checkEnvSteps() {
	if limit := c.h.Run.Stop.EnvSteps; limit > 0 && c.trained >= limit {
		c.stop(component.StopEnvSteps)
	}
}

func (c *Runner) stop(reason component.StopReason) {
	if c.stopping {
		return
	}
	c.stopping = true
	c.h.Stop(reason)
}

// onStats takes the report of a learner round, writes the metrics line and applies the rule on env steps.
func (c *Runner) onStats(m *hostabi.Message) {
	names, values, err := c.readStats(m.Handle)
	if err != nil {
		c.log.report(fmt.Errorf("learner's stats %v: %w", m.Handle, err))
		return
	}
	for i, name := range names {
		c.latest[name] = values[i]
	}
	if steps, ok := c.latest[globalStep]; ok && steps >= 0 && steps < math.MaxInt64 {
		c.trained = uint64(steps)
	}
	c.version = m.PolicyVersion
	c.log.flushEpisodes()
	c.writeMetrics(names, values)
	c.checkEnvSteps()
	c.checkRate()
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
