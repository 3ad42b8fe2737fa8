package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/seeds"
)

// Rows returns a head and a row for each run, of columns and keys of pipelines.
func Rows(list []*Run, columns []string) ([][]string, error) {
	rows := [][]string{columns}
	for _, name := range columns {
		if err := checkName(list, name); err != nil {
			return nil, err
		}
	}
	for _, r := range list {
		row := make([]string, len(columns))
		for i, name := range columns {
			var err error
			if row[i], err = r.Field(name); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Round shortens the numbers of Rows to what people compare; keys of pipelines stay exact.
func Round(rows [][]string) [][]string {
	for _, row := range rows[1:] {
		for i, cell := range row {
			x, err := strconv.ParseFloat(cell, 64)
			if _, fraction, _ := strings.Cut(cell, "."); err == nil && len(fraction) > 2 && slices.Contains(Columns(), rows[0][i]) {
				row[i] = text.Returns(x)
			}
		}
	}
	return rows
}

// GroupRows returns a head and a row for each group: how its runs did.
func GroupRows(key string, groups []Group) [][]string {
	rows := [][]string{{key, "runs", "without", "mean", "interval", "median", "iqm", "iqm_interval"}}
	for _, g := range groups {
		_, scores, without := Scores(g.Runs)
		s := seeds.Summarize(scores, seeds.Options{})
		rows = append(rows, []string{cmp.Or(g.Value, "-"), fmt.Sprint(len(g.Runs)), fmt.Sprint(without), text.Returns(s.Mean.Value),
			s.Mean.Interval(), text.Returns(s.Median.Value), text.Returns(s.IQM.Value), s.IQM.Interval()})
	}
	return rows
}

// SetRows returns a head and a row for each set of seeds.
func SetRows(sets []runs.SetInfo) [][]string {
	rows := [][]string{{"set", "seeds", "ended", "failed", "mean", "interval", "started"}}
	for i := range sets {
		s := &sets[i]
		if s.Sweep != nil {
			rows = append(rows, []string{s.ID(), "search", "", "", "", "", s.Started.Local().Format(time.DateTime)})
			continue
		}
		scores, ended, failed := seeds.Results(s)
		mean := seeds.Summarize([][]float64{scores}, seeds.Options{}).Mean
		rows = append(rows, []string{s.ID(), fmt.Sprint(len(s.Seeds)), fmt.Sprint(ended), fmt.Sprint(failed), text.Returns(mean.Value),
			mean.Interval(), s.Started.Local().Format(time.DateTime)})
	}
	return rows
}

// Facts returns the facts of one run, a name and a value each.
func Facts(r *Run, checkpoints []runs.Saved) ([][]string, error) {
	columns := Columns()
	rows, err := Rows([]*Run{r}, columns)
	if err != nil {
		return nil, err
	}
	var facts [][]string
	for i, name := range columns {
		facts = append(facts, []string{name, rows[1][i]})
	}
	i := &r.Info
	facts = append(facts, []string{"folder", r.Dir}, []string{"bytes", fmt.Sprint(runs.Bytes(r.Dir))}, []string{"rlhost", i.Rlhost},
		[]string{"kernels", i.Kernel}, []string{"processor", i.Host.CPU})
	if len(i.Policies) > 1 {
		facts = append(facts, []string{"learned", strings.Join(slices.Sorted(maps.Keys(i.Policies)), ", ")})
	}
	if o := i.Outcome; o != nil && len(o.ParamsHashes) > 0 {
		facts = append(facts, []string{"parameters", fmt.Sprintf("%.8s", o.ParamsHash)})
		for _, name := range slices.Sorted(maps.Keys(o.ParamsHashes)) {
			facts = append(facts, []string{"parameters of " + name, fmt.Sprintf("%.8s", o.ParamsHashes[name])})
		}
	}
	for _, c := range checkpoints {
		what := []string{fmt.Sprintf("policy version %d", c.PolicyVersion), fmt.Sprintf("%d env steps", c.EnvSteps)}
		if c.MeanReturn != nil {
			what = append(what, "return "+text.Returns(*c.MeanReturn))
		}
		if c.Latest {
			what = append(what, "latest")
		}
		facts = append(facts, []string{"checkpoint", strings.Join(append(what, c.Best...), ", ")})
	}
	return facts, nil
}

// DifferenceRows returns a head and a row for each key in which groups of runs differ, by the first run of each.
func DifferenceRows(groups []Group) ([][]string, error) {
	rows, list := [][]string{{"key"}}, []*Run{}
	for _, g := range groups {
		rows[0], list = append(rows[0], g.Value), append(list, g.Runs[0])
	}
	differ, err := Differences(list)
	if err != nil {
		return nil, err
	}
	columns := slices.Concat([]string{"eval_return", "env_steps", "seconds"}, differ)
	values, err := Rows(list, columns)
	if err != nil {
		return nil, err
	}
	for i, key := range columns {
		row := []string{key}
		for _, of := range values[1:] {
			row = append(row, of[i])
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Improvement describes how likely a run of one group has a higher return than a run of another, in lines. It is empty if
// one of them is a single run; the error says why returns cannot be compared.
func Improvement(a, b Group) (string, error) {
	if len(a.Runs) < 2 || len(b.Runs) < 2 {
		return "", nil
	}
	var lines strings.Builder
	var tasks [2][]string
	var scores [2][][]float64
	for i, g := range []Group{a, b} {
		without := 0
		if tasks[i], scores[i], without = Scores(g.Runs); len(scores[i]) == 0 {
			return "", fmt.Errorf("%s: none of its %d runs has ended with an evaluation", g.Value, without)
		}
		mean := seeds.Summarize(scores[i], seeds.Options{}).Mean
		fmt.Fprintf(&lines, "%s: mean return %s (%s) over %s\n", g.Value, text.Returns(mean.Value), mean.Interval(), text.Count(len(g.Runs)-without, "run"))
	}
	if !slices.Equal(tasks[0], tasks[1]) {
		return "", fmt.Errorf("%s was trained on %v and %s on %v: their returns cannot be compared", a.Value, tasks[0], b.Value, tasks[1])
	}
	e := seeds.Improvement(scores[0], scores[1], seeds.Options{})
	fmt.Fprintf(&lines, "probability that a run of %s has the higher return: %.3f (%.3f to %.3f)\n", a.Value, e.Value, e.Low, e.High)
	return lines.String(), nil
}
