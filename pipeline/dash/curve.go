package dash

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Metrics of evaluations.
const (
	evalReturn = "eval/episodic_return"
	evalStd    = "eval/return_std"
	evalLength = "eval/episodic_length"
	evalStep   = "eval/global_step"
)

// chart is one picture of a page.
type chart struct {
	ID, Title, Unit string
	Metrics         []string
}

// charts are the pictures of a page, in its order.
var charts = []chart{
	{"return", "Return", "reward", []string{component.GaugeMeanReturn, evalReturn}},
	{"length", "Episode length", "env steps", []string{"charts/episodic_length"}},
	{"speed", "Speed", "env steps/s", []string{"charts/SPS"}},
	{"policy_loss", "Policy loss", "1", []string{"losses/policy_loss"}},
	{"value_loss", "Value loss", "reward²", []string{"losses/value_loss"}},
	{"entropy", "Entropy", "nats", []string{"losses/entropy"}},
	{"kl", "KL divergence", "nats", []string{"losses/approx_kl"}},
	{"clip", "Clip fraction", "share", []string{"losses/clipfrac"}},
	{"lag", "Policy lag", "versions", []string{"lag/mean", "lag/max"}},
}

// usual are the metrics that are always kept.
var usual = func() map[string]bool {
	all := map[string]bool{evalStd: true, evalLength: true, evalStep: true, "policy_version": true, "charts/episodes": true}
	for _, c := range charts {
		for _, m := range c.Metrics {
			all[m] = true
		}
	}
	return all
}()

// Bounds on what a picture shows.
const (
	points     = 200 // of a line; fewer where there are many
	maxDrawn   = 12  // lines of a picture
	maxMarks   = 100 // of a kind
	maxGroups  = 12  // that are compared
	maxOfGroup = 64  // runs
)

// asked is which picture an address asks for.
type asked struct {
	groups   []group
	chart    chart
	axis     curves.Axis
	from, to float64
	marks    bool
	wide     bool
}

// drawn is a picture, and what its marks are.
type drawn struct {
	curves.Picture
	marks []mark
}

// mark is something that happened.
type mark struct {
	X    float64 `json:"x"`
	Text string  `json:"text"`

	kind int
}

// chartOf returns the chart with an ID, else the one of a metric.
func chartOf(id, metric string) chart {
	if metric != "" {
		c := chart{ID: "metric", Title: cut(metric, 60), Metrics: []string{metric}}
		if m, _, ok := metrics.Find(metric); ok {
			c.Unit = m.Unit
		}
		return c
	}
	if i := slices.IndexFunc(charts, func(c chart) bool { return c.ID == id }); i >= 0 {
		return charts[i]
	}
	return chart{}
}

// draw makes a picture of what runs say now.
func (a *asked) draw(ctx context.Context) drawn {
	d := drawn{Picture: curves.Picture{
		Format: "svg", X: "env steps", Y: a.chart.Unit, Width: 5, Height: 2.6, From: a.from, To: a.to, Clear: true,
	}}
	if a.axis == curves.Seconds {
		d.X = "seconds"
	}
	if a.wide {
		d.Width, d.Height = 9, 4
	}
	for _, g := range a.groups[:min(len(a.groups), maxGroups)] {
		d.Lines = append(d.Lines, a.lines(ctx, g)...)
	}
	d.Lines = d.Lines[:min(len(d.Lines), maxDrawn)]
	if a.marks && len(a.groups) == 1 && len(a.groups[0].Runs) == 1 && a.axis == curves.EnvSteps {
		d.marks = marksOf(a.groups[0].Runs[0].look(ctx))
		for _, m := range d.marks {
			d.Marks = append(d.Marks, curves.Mark{X: m.X, Kind: m.kind})
		}
	}
	return d
}

// lines returns the lines of a run, or of the runs of a set together, one for each metric and policy that has points.
func (a *asked) lines(ctx context.Context, g group) (lines []curves.Line) {
	var order []string
	all := map[string][]curves.Curve{}
	for _, r := range g.Runs[:min(len(g.Runs), maxOfGroup)] {
		for _, one := range r.curves(ctx, a) {
			if _, known := all[one.label]; !known {
				order = append(order, one.label)
			}
			all[one.label] = append(all[one.label], one.curve)
		}
	}
	for _, label := range order {
		list := all[label]
		band := curves.IQMOver(list, points/(1+len(a.groups)/4))
		if len(band.X) == 0 {
			continue
		}
		name := label
		if len(a.groups) > 1 || g.Set {
			name = strings.TrimSpace(cut(g.Word, 40) + " " + label)
		}
		if len(list) > 1 {
			name += fmt.Sprintf(" (%d)", len(list))
		}
		lines = append(lines, curves.Line{Label: name, Band: band})
	}
	return lines
}

// labelled is a curve of one run.
type labelled struct {
	label string
	curve curves.Curve
}

// curves returns the curves of a run in the part of the axis that is asked for.
func (r *run) curves(ctx context.Context, a *asked) (list []labelled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.refreshed(ctx)
	if r.log == nil {
		return nil
	}
	for _, metric := range a.chart.Metrics {
		r.want(metric)
		for _, name := range now.Names {
			if !sameMetric(name, metric) {
				continue
			}
			c := r.log.Curve(name, a.axis)
			if prefix, ok := strings.CutSuffix(name, evalReturn); ok && a.axis == curves.EnvSteps {
				c = r.log.Along(name, prefix+evalStep)
			}
			if a.from != a.to {
				c = c.Part(a.from, a.to)
			}
			if len(c.X) > 0 {
				list = append(list, labelled{labelOf(&now, a.chart.Metrics, name, metric), c})
			}
		}
	}
	return list
}

// sameMetric reports whether a name is a metric, or that of another policy.
func sameMetric(name, metric string) bool {
	if name == metric {
		return true
	}
	if !strings.HasSuffix(name, "/"+metric) { // Find looks through all metrics, and this is asked of all names for each picture
		return false
	}
	m, policy, ok := metrics.Find(name)
	return ok && policy != "" && m.Name == metric
}

// labelOf names a curve: by its policy where there are several, by its metric where the picture has several.
func labelOf(now *look, of []string, name, metric string) string {
	var words []string
	if policy := strings.TrimSuffix(strings.TrimSuffix(name, metric), "/"); len(now.Info.Policies) > 1 || policy != "" {
		words = append(words, cut(cmp.Or(policy, now.Info.Policy), 30))
	}
	switch {
	case metric == evalReturn:
		words = append(words, "evaluation")
	case metric == component.GaugeMeanReturn:
		words = append(words, "training")
	case len(of) > 1:
		words = append(words, metric[strings.LastIndexByte(metric, '/')+1:])
	}
	return strings.Join(words, " ")
}

// marksOf returns what happened to a run.
func marksOf(now look) (marks []mark) {
	add := func(kind, n int, at func(i int) (float64, string)) {
		for i := max(n-maxMarks, 0); i < n; i++ {
			x, text := at(i)
			marks = append(marks, mark{x, text, kind})
		}
	}
	var made []runs.Entry
	for i := range now.Changes {
		switch e := &now.Changes[i]; e.Outcome {
		case runs.StepCommitted, runs.OutcomeKept, runs.StepBack, runs.OutcomeOpen:
			made = append(made, *e)
		}
	}
	add(0, len(made), func(i int) (float64, string) {
		e := &made[i]
		return float64(e.EnvStep), cut(e.What+" "+e.Component+" "+e.Changed()+": "+e.Outcome, 120)
	})
	add(1, len(now.Evaluations), func(i int) (float64, string) {
		e := now.Evaluations[i]
		return e.EnvSteps, "evaluation " + figure(e.Return)
	})
	add(2, len(now.Checkpoints), func(i int) (float64, string) {
		c := &now.Checkpoints[i]
		return float64(c.EnvSteps), fmt.Sprintf("checkpoint, policy version %d", c.PolicyVersion)
	})
	return marks
}

// finite makes numbers ones that JSON has.
func finite(list []float64) []float64 {
	for i, v := range list {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			list[i] = 0
		}
	}
	return list
}
