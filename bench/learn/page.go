package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What the tables stand between in the page.
const (
	first = "<!-- make learn writes from here -->\n"
	last  = "<!-- to here -->\n"
)

// line is a row for people, as test prints it.
func (r *row) line() string {
	list := r.evaluations()
	return fmt.Sprintf("%-15s %-8s mean %8.2f  bar %6g  median %8.2f  least %8.2f  most %8.2f  at the bar after %s env steps  %.1f s  %s",
		r.name, r.preset, r.mean(), r.bar, median(list), slices.Min(list), slices.Max(list), r.reachedText(), r.seconds(), joined(list))
}

// tables returns both tables with what there is to say of them.
func tables(rows, scales []row, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kernels %s, %d cores, %.0f s together.\n\n", rows[0].results[0].kernels, runtime.NumCPU(), took.Seconds())
	b.WriteString("| task | preset | env steps | bar | mean of the seeds | median (least to most) | env steps to the bar | seconds | seeds 1, 2, … |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		list := r.evaluations()
		bar := fmt.Sprint(r.bar)
		if r.whence != "" {
			bar += " (" + r.whence + ")"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | **%.1f** | %.1f (%.1f to %.1f) | %s | %.1f | %s |\n", r.name, r.preset, r.steps, bar, r.mean(),
			median(list), slices.Min(list), slices.Max(list), r.reachedText(), r.seconds(), joined(list))
	}
	b.WriteString("\nCartPole with every reward multiplied, preset `general`, evaluations divided by the factor:\n\n")
	b.WriteString("| rewards × | seeds that reached 475 | env steps to it | mean evaluation | seeds 1, 2, … |\n|---|---|---|---|---|\n")
	for i := range scales {
		r := &scales[i]
		list := r.each(func(x *result) float64 { return x.evaluation * 475 / r.bar })
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %s | %.1f | %s |\n", r.name, r.count(), len(list), r.reachedText(), sum/float64(len(list)), joined(list))
	}
	return b.String()
}

// seconds is the median time of a training.
func (r *row) seconds() float64 { return median(r.each(func(x *result) float64 { return x.seconds })) }

// count returns how many seeds were at the bar.
func (r *row) count() int {
	n := 0
	for i := range r.results {
		if !math.IsNaN(r.results[i].reached) {
			n++
		}
	}
	return n
}

// reachedText is the median of the env steps to the bar.
func (r *row) reachedText() string {
	v := median(r.each(func(x *result) float64 { return x.reached }))
	if math.IsNaN(v) {
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

// writeBetween replaces what stands between the markers of a page.
func writeBetween(file, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), first)
	_, after, closed := strings.Cut(rest, last)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the tables: it lacks %q or, behind that, %q", file, first, last)
	}
	return os.WriteFile(file, []byte(before+first+"\n"+text+"\n"+last+after), 0o644)
}
