package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/pipeline/seeds"
)

// Markers around the tables in the page.
const (
	first = "<!-- make learn writes from here -->\n"
	last  = "<!-- to here -->\n"
)

// line is a result for people, as test prints it.
func (r *result) line() string {
	return fmt.Sprintf("%-15s %-8s greedy IQM %s, mean %s  sampled %s  bar %g  at the bar after %s env steps  %.1f s", r.Task, r.Preset,
		r.estimate(r.Greedy.IQM), r.estimate(r.Greedy.Mean), r.estimate(r.Sampled.Mean), r.Bar, r.reachedText(), r.seconds())
}

// side says on which side of the bar the mean must be, if not above.
func (r *result) side() string {
	if r.Below {
		return " at most"
	}
	return ""
}

func (r *result) estimate(e seeds.Estimate) string {
	if e.TooFew {
		return fmt.Sprintf("%.*f (too few seeds)", r.digits(), e.Value)
	}
	return fmt.Sprintf("%.[1]*[2]f (%.[1]*[3]f to %.[1]*[4]f)", r.digits(), e.Value, e.Low, e.High)
}

// tables returns the tables of all results.
func tables(rows, scales []*result, probes *probesResult) string {
	var b strings.Builder
	b.WriteString("| environment | preset | env steps | greedy: IQM | greedy: mean | sampled: mean | bar | published | env steps to the bar | seconds | seeds |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		mark := r.side()
		if r.BySampled {
			mark = " sampled"
		}
		if r.met() && len(r.Seeds) > 1 { // one seed has no interval
			mark += " ✓"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | **%s | %s | %s | %g%s | %s | %s | %.1f | %d |\n", r.Task, r.Preset, r.Steps,
			strings.Replace(r.estimate(r.Greedy.IQM), " ", "** ", 1), r.estimate(r.Greedy.Mean), r.estimate(r.Sampled.Mean), r.Bar, mark, r.Published, r.reachedText(), r.seconds(), len(r.Seeds))
	}
	b.WriteString("\nThis is CartPole with all rewards multiplied and the preset `general`.\nEvaluations are divided by the factor:\n\n")
	b.WriteString("| rewards × | seeds that reached 475 | env steps to it | mean evaluation | seeds 1, 2, … |\n|---|---|---|---|---|\n")
	for _, r := range scales {
		times := 475 / r.Bar
		list := r.each(func(s *seedResult) float64 { return s.Greedy * times })
		fmt.Fprintf(&b, "| %g | %d of %d | %s | %.1f | %s |\n", 1/times, r.count(), len(list), r.reachedText(), r.Greedy.Mean.Value*times, joined(list))
	}
	b.WriteString(origins)
	for _, r := range append(rows, scales...) {
		b.WriteString(r.origin(fmt.Sprintf("%s, `%s`", r.Task, r.Preset)))
	}
	if probes != nil {
		b.WriteString(probes.table())
	}
	return b.String()
}

// seconds is the median time of a training.
func (r *result) seconds() float64 {
	return median(r.each(func(s *seedResult) float64 { return s.Seconds }))
}

// count returns how many seeds were at the bar.
func (r *result) count() int {
	n := 0
	for i := range r.Seeds {
		if r.Seeds[i].Reached != nil {
			n++
		}
	}
	return n
}

// reachedText is the median of the env steps to the bar.
func (r *result) reachedText() string {
	v := r.reached()
	if math.IsInf(v, 1) {
		return "–"
	}
	return fmt.Sprintf("%.0fk", v/1e3)
}

func joined(list []float64) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strings.Join(texts, ", ")
}

// writeBetween replaces the text between the markers of a page.
func writeBetween(file, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), first)
	_, after, closed := strings.Cut(rest, last)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the tables: it lacks %q or, after that, %q", file, first, last)
	}
	return os.WriteFile(file, []byte(before+first+"\n"+text+"\n"+last+after), 0o644)
}
