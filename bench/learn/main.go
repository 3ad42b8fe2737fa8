package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"
)

// options are what the command line says.
type options struct {
	program string
	seeds   int
	jobs    int
	docs    string
}

func main() {
	var o options
	flag.StringVar(&o.program, "rlhost", "bin/rlhost", "program to train with")
	flag.IntVar(&o.seeds, "seeds", 0, "seeds of each task; default 3 for test and 10 for table")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "trainings at the same time")
	flag.StringVar(&o.docs, "docs", "docs/learning.md", "page that table writes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: learn [flags] test | table")
		flag.PrintDefaults()
	}
	flag.Parse()
	parts := map[string]func(context.Context, options) error{"test": test, "table": table}
	part := parts[flag.Arg(0)]
	if part == nil || flag.NArg() > 1 || o.seeds < 0 || o.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := part(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(1)
	}
}

// test trains what has a bar over few seeds and fails where the mean is below it.
func test(ctx context.Context, o options) error {
	began := time.Now()
	barred := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return !t.inTest })
	rows, err := trainAll(ctx, o, barred, max(o.seeds, 0), 3)
	if err != nil {
		return err
	}
	var errs []error
	for i := range rows {
		r := &rows[i]
		fmt.Println(r.line())
		if mean := r.mean(); !(mean >= r.bar) {
			errs = append(errs, fmt.Errorf("%s with preset %s: the evaluations have a mean of %.1f over %d seeds, the bar is %g",
				r.name, r.preset, mean, len(r.results), r.bar))
		}
	}
	fmt.Printf("%.0f s\n", time.Since(began).Seconds())
	return errors.Join(errs...)
}

// table trains everything and writes the tables into the page.
func table(ctx context.Context, o options) error {
	began := time.Now()
	rows, err := trainAll(ctx, o, tasks, o.seeds, 10)
	if err != nil {
		return err
	}
	scaled, err := scaledTasks(ctx)
	if err != nil {
		return err
	}
	defer scaled.remove()
	scales, err := trainAll(ctx, o, scaled.tasks, o.seeds, 5)
	if err != nil {
		return err
	}
	text := tables(rows, scales, time.Since(began))
	fmt.Print(text)
	return writeBetween(o.docs, text)
}
