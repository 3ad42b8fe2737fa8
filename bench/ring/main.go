package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
)

// options are the command's flags.
type options struct {
	rounds   int
	python   int
	mix      string
	form     int
	messages uint64
	trips    int
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "child" {
		exit(child(os.Args[2:]))
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each case")
	flag.IntVar(&o.python, "python", 1, "rounds with the Python package")
	flag.StringVar(&o.mix, "mix", "", "only this mix, such as 20x20; none: only round trips")
	flag.IntVar(&o.form, "form", 0, "only this form: 1 single, 2 into get_many, 3 bulk")
	flag.Uint64Var(&o.messages, "messages", 1_000_000, "messages of a round; four times as many in bulk")
	flag.IntVar(&o.trips, "trips", 2000, "round trips of a round; 0: leave them out")
	flag.Parse()
	exit(measure(o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// cases returns the table's: the six mixes in three forms.
func cases(o options) []mix {
	var all []mix
	for _, m := range []struct{ producers, consumers int }{{1, 1}, {1, 10}, {10, 1}, {3, 20}, {20, 3}, {20, 20}} {
		if o.mix != "" && o.mix != fmt.Sprintf("%dx%d", m.producers, m.consumers) {
			continue
		}
		for i, b := range []struct {
			put, get int
			scale    uint64 // bulk is too fast for a short round to mean much
		}{{1, 1, 1}, {1, 100, 1}, {32, 100, 4}} {
			if o.form != 0 && o.form != i+1 {
				continue
			}
			each := o.messages * b.scale / uint64(m.producers)
			all = append(all, mix{m.producers, m.consumers, each, b.put, b.get})
		}
	}
	return all
}

func measure(o options) error {
	p, err := findPeers()
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %9s %9s %9s %9s   %s\n", "million messages/s", "queue", "C++ core", "messages", "Python",
		"queue to the core [lowest, highest]; queue again; queue to Python")
	for _, m := range cases(o) {
		if err := row(o, p, m); err != nil {
			return err
		}
	}
	if o.trips > 0 {
		return roundTrips(o, p)
	}
	return nil
}

// row measures one case and prints it.
func row(o options, p peers, m mix) error {
	ways := []func(mix) (float64, error){p.queue, p.core, p.queue}
	if m.producers == 1 && m.consumers == 1 {
		ways = append(ways, messages)
	}
	rates := make([][]float64, 4)
	for round := range o.rounds {
		for i := range ways {
			way := (i + round) % len(ways)
			rate, err := ways[way](m)
			if err != nil {
				return err
			}
			rates[way] = append(rates[way], rate)
		}
	}
	small := m
	small.each = max(m.each/60, uint64(m.put))
	var python []float64
	for range o.python {
		rate, err := p.pickled(small)
		if err != nil {
			return err
		}
		python = append(python, rate)
	}
	against, again := ratios(rates[0], rates[1]), ratios(rates[2], rates[0])
	fmt.Printf("%-24v %9s %9s %9s %9s   %.2f [%.2f, %.2f]; %.2f; %s\n", m,
		millions(rates[0]), millions(rates[1]), millions(rates[3]), millions(python),
		median(against), slices.Min(against), slices.Max(against), median(again), quotient(rates[0], python))
	return nil
}

func ratios(a, b []float64) []float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return r
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func millions(rates []float64) string {
	if len(rates) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", median(rates)/1e6)
}

func quotient(a, b []float64) string {
	if len(b) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", median(a)/median(b))
}
