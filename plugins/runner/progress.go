package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/control/text"
)

// Windows of the rates that progress shows.
const (
	shortWindow = 10 * time.Second
	longWindow  = time.Minute
)

// Output is where and how progress is shown. The zero Output shows nothing.
type Output struct {
	Out io.Writer
	// Terminal: one live line, redrawn in place. Set it where stdout and stdin are terminals; else there is a
	// plain line each time.
	Terminal bool
	Width    func() int // columns of the terminal, asked each time; nil or 0 or less = 80
	JSON     bool       // one JSON object a line instead, also where the file does not list console
	Metrics  bool       // with JSON: also a line for each row of metrics, with the event "metrics" before them
	Color    bool       // dim labels; the Output's maker must check NO_COLOR
	// Queues returns the depths of the queues to show; nil = none. It is called on the runner's loop.
	Queues func() []Queue
	// Keys returns the keys of the pipeline that runs, with their values as TOML, for TensorBoard; nil = they are in no log. It is called on
	// the runner's loop.
	Keys func() map[string]string
	// Python runs what takes the logs wandb and mlflow, with the package rlhost; empty = python3.
	Python string
}

// Queue is the fill level of a connection.
type Queue struct {
	Name   string `json:"name"`
	Queued int    `json:"queued"`
	Depth  int    `json:"depth"`
}

func (o Output) withDefaults() Output {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Width == nil {
		o.Width = func() int { return 0 }
	}
	if o.Queues == nil {
		o.Queues = func() []Queue { return []Queue{} }
	}
	return o
}

// progress is a JSON line of progress. Unknown values are null.
type progress struct {
	Event         string   `json:"event"`
	WallSeconds   float64  `json:"wall_seconds"`
	Done          *float64 `json:"done"`         // share of the run, by its rule that ends it first
	SecondsLeft   *float64 `json:"seconds_left"` // at the pace of the last minute
	EnvSteps      uint64   `json:"env_steps"`
	EnvStepsMade  uint64   `json:"env_steps_made"`
	PerSecond10   float64  `json:"env_steps_per_s_10"`
	PerSecond60   float64  `json:"env_steps_per_s_60"`
	Episodes      uint64   `json:"episodes"`
	MeanReturn    *float64 `json:"train_return"`
	StdReturn     *float64 `json:"std_return"`
	WindowFull    bool     `json:"window_full"`
	EpisodeLength *float64 `json:"episode_length"`
	PolicyVersion uint64   `json:"policy_version"`
	LagMean       *float64 `json:"lag_mean"`
	LagMax        *float64 `json:"lag_max"`
	Queues        []Queue  `json:"queues"`
	KL            *float64 `json:"approx_kl"`
	ClipFraction  *float64 `json:"clipfrac"`
	Entropy       *float64 `json:"entropy"`
	LogErrors     uint64   `json:"log_errors,omitempty"`
}

// show shows the state of the run.
func (rn *Runner) show() {
	if rn.out.JSON {
		rn.showJSON()
		return
	}
	if !slices.Contains(rn.config.Log, logConsole) {
		return
	}
	fields := rn.fields()
	if !rn.out.Terminal {
		_, _ = io.WriteString(rn.screen, render(fields, math.MaxInt, rn.out.Color)+"\n")
		return
	}
	width := rn.out.Width()
	if width <= 0 {
		width = 80
	}
	// The last column stays free: some terminals wrap when it is written.
	rn.screen.Live(render(fields, width-1, rn.out.Color))
}

func (rn *Runner) progress() progress {
	done, left := rn.done()
	return progress{
		Event: "progress", WallSeconds: rn.wall().Seconds(), Done: known(done), SecondsLeft: known(left),
		EnvSteps: rn.counted(), EnvStepsMade: rn.envStepsMade(),
		PerSecond10: rn.rate.PerSecond(shortWindow), PerSecond60: rn.rate.PerSecond(longWindow),
		Episodes: rn.window.Episodes(), MeanReturn: known(rn.window.Mean()), StdReturn: known(rn.window.Std()),
		WindowFull: rn.window.Full(), EpisodeLength: known(rn.window.MeanLength()), PolicyVersion: rn.version,
		LagMean: rn.reported("lag/mean"), LagMax: rn.reported("lag/max"), Queues: rn.out.Queues(),
		KL: rn.reported("losses/approx_kl"), ClipFraction: rn.reported("losses/clipfrac"),
		Entropy: rn.reported("losses/entropy"), LogErrors: rn.log.errors.Value(),
	}
}

// done returns which share of the run is done and how many seconds are left, by the rule on env steps or on time that ends it first. Both are
// NaN without such rules; a return may end it before.
func (rn *Runner) done() (share, left float64) {
	share, left = math.NaN(), math.NaN()
	stop, rate := &rn.h.Run.Stop, rn.rate.PerSecond(longWindow)
	if stop.EnvSteps > 0 {
		share = float64(rn.counted()) / float64(stop.EnvSteps)
		if rate > 0 {
			left = float64(stop.EnvSteps-min(rn.counted(), stop.EnvSteps)) / rate
		}
	}
	if stop.WallTime > 0 {
		wall := rn.wall()
		share = orOther(share, wall.Seconds()/stop.WallTime.Seconds(), math.Max)
		left = orOther(left, max(0, stop.WallTime-wall).Seconds(), math.Min)
	}
	return min(share, 1), left
}

// orOther combines two numbers of which the first may be unknown.
func orOther(a, b float64, both func(a, b float64) float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return both(a, b)
}

func (rn *Runner) showJSON() {
	b, err := json.Marshal(rn.progress())
	if err != nil {
		rn.log.report(err)
		return
	}
	_, _ = rn.screen.Write(append(b, '\n'))
}

// known returns nil for numbers that JSON does not have.
func known(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// reported returns the learner's last number of a name, or nil.
func (rn *Runner) reported(name string) *float64 {
	v, ok := rn.latest[name]
	if !ok {
		return nil
	}
	return known(v)
}

// field is one part of the progress line.
type field struct{ label, value string }

// fields returns the parts of the line, the most important first.
func (rn *Runner) fields() []field {
	p := rn.progress()
	fields := []field{
		{"", time.Now().Format(time.TimeOnly)},
		{"env steps", rn.shownEnvSteps(&p)},
		{"return", rn.shownReturn(&p)},
		{"per s", short(p.PerSecond10) + "|" + short(p.PerSecond60)},
		{"length", decimals(p.EpisodeLength, 0)},
	}
	if rn.learns {
		fields = append(fields, field{"lag", decimals(p.LagMean, 1) + "/" + decimals(p.LagMax, 0)})
	}
	if p.SecondsLeft != nil {
		fields = slices.Insert(fields, 2, field{"left", (time.Duration(*p.SecondsLeft) * time.Second).String()})
	}
	for _, q := range p.Queues {
		fields = append(fields, field{q.Name, fmt.Sprintf("%d/%d", q.Queued, q.Depth)})
	}
	if rn.learns {
		fields = append(fields, field{"kl", decimals(p.KL, 4)}, field{"clip", decimals(p.ClipFraction, 3)},
			field{"entropy", decimals(p.Entropy, 3)})
	}
	if p.LogErrors > 0 {
		fields = slices.Insert(fields, 1, field{"log errors", strconv.FormatUint(p.LogErrors, 10)})
	}
	return fields
}

// shownEnvSteps shows the env steps, and where the run ends by them, of how many.
func (rn *Runner) shownEnvSteps(p *progress) string {
	if all := rn.h.Run.Stop.EnvSteps; all > 0 {
		return short(float64(p.EnvSteps)) + "/" + short(float64(all))
	}
	return short(float64(p.EnvSteps))
}

// quietEnvSteps is after how many env steps without the end of an episode the line says so.
const quietEnvSteps = 100_000

// shownReturn shows the window; while it is not full, the missing part, and if it has not changed, for how long.
func (rn *Runner) shownReturn(p *progress) string {
	shown := "–"
	if p.MeanReturn != nil && p.StdReturn != nil {
		n := text.Decimals(*p.MeanReturn, *p.StdReturn)
		shown = decimals(p.MeanReturn, n) + "±" + decimals(p.StdReturn, n)
	}
	seen, envs := rn.window.Coverage()
	var about []string
	switch {
	case p.WindowFull:
	case rn.window.Len() < rn.window.Size():
		about = append(about, fmt.Sprintf("%d of %d episodes", rn.window.Len(), rn.window.Size()))
	default:
		about = append(about, fmt.Sprintf("%d of %d envs", seen, envs))
	}
	if quiet := p.EnvSteps - min(rn.episodeAt, p.EnvSteps); quiet >= quietEnvSteps {
		about = append(about, "no episode for "+short(float64(quiet))+" env steps")
	}
	if len(about) == 0 {
		return shown
	}
	return shown + " (" + strings.Join(about, ", ") + ")"
}

// render joins the fields that fit the width. A field that does not fit ends the line, so that none is cut.
func render(fields []field, width int, color bool) string {
	var b strings.Builder
	used := 0
	for i, f := range fields {
		n := utf8.RuneCountInString(f.value)
		if f.label != "" {
			n += utf8.RuneCountInString(f.label) + 1
		}
		if i > 0 {
			n += 2
		}
		if n > width-used {
			break
		}
		used += n
		if i > 0 {
			b.WriteString("  ")
		}
		if f.label != "" && color {
			b.WriteString("\x1b[2m" + f.label + "\x1b[0m ")
		} else if f.label != "" {
			b.WriteString(f.label + " ")
		}
		b.WriteString(f.value)
	}
	return b.String()
}

func decimals(v *float64, n int) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', n, 64)
}

// short writes a count with three digits and a unit.
func short(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if v < unit.size*0.9995 { // a number that rounds to 1000 of the smaller unit is 1.00 of this one
			continue
		}
		for decimals := 2; ; decimals-- {
			if text := strconv.FormatFloat(v/unit.size, 'f', decimals, 64); len(text) <= 4 || decimals == 0 {
				return text + unit.name
			}
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
