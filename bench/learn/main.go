package main

import (
	"cmp"
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

// options are the command line's.
type options struct {
	program string
	seeds   int
	jobs    int
	docs    string
	results string
	work    string // folder of the trainings, which another call continues
	only    string
}

func main() {
	var o options
	flag.StringVar(&o.program, "rlhost", "bin/rlhost", "program to train with")
	flag.IntVar(&o.seeds, "seeds", 0, "seeds of each task; default 3 for test, 10 of brief tasks, and 10 for train")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "trainings at the same time")
	flag.StringVar(&o.docs, "docs", "docs/results/learning.md", "page that page writes")
	flag.StringVar(&o.results, "results", "bench/learn/results", "folder of results")
	flag.StringVar(&o.work, "work", ".cache/learn", "folder of trainings; train goes on with those that it finds there")
	flag.StringVar(&o.only, "only", "", "one task, such as Acrobot-v1-general, or "+probesName+"; default all")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: learn [flags] test | train | page")
		flag.PrintDefaults()
	}
	flag.Parse()
	parts := map[string]func(context.Context, options) error{"test": test, "train": trainAll, "page": page}
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

// asks reports whether to train a task of that name.
func (o *options) asks(name string) bool { return o.only == "" || o.only == name }

// test trains the tasks with a bar over few seeds, from scratch, and fails where the mean's interval lies on the wrong side of it.
func test(ctx context.Context, o options) (err error) {
	began := time.Now()
	if o.work, err = os.MkdirTemp("", "rlhost-learn-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.work)) }()
	var errs []error
	if o.asks(probesName) {
		r, err := trainProbes(ctx, o, cmp.Or(o.seeds, 1))
		if err != nil {
			return err
		}
		fmt.Println(r.line())
		errs = append(errs, r.missed())
	}
	for _, t := range tasks {
		if !t.inTest || !o.asks(t.folder()) {
			continue
		}
		r, err := train(ctx, o, &t, cmp.Or(o.seeds, t.testSeeds()))
		if err != nil {
			return err
		}
		fmt.Println(r.line())
		if !r.met() {
			errs = append(errs, fmt.Errorf("%s with preset %s: the mean is %s, the bar %g%s", r.Task, r.Preset, r.estimate(r.judged().Mean), r.Bar, r.side()))
		}
	}
	fmt.Printf("%.0f s\n", time.Since(began).Seconds())
	return errors.Join(errs...)
}

// trainAll trains every task, keeps its result, and writes the page.
func trainAll(ctx context.Context, o options) error {
	if o.asks(probesName) {
		r, err := trainProbes(ctx, o, cmp.Or(o.seeds, 3))
		if err != nil {
			return err
		}
		fmt.Println(r.line())
		if err := writeJSON(o.results, probesName, r); err != nil {
			return err
		}
	}
	list, err := allTasks(ctx, o.work)
	if err != nil {
		return err
	}
	for _, t := range list {
		if !o.asks(t.folder()) {
			continue
		}
		r, err := train(ctx, o, &t, cmp.Or(o.seeds, t.seeds()))
		if err != nil {
			return err
		}
		fmt.Println(r.line())
		if err := writeJSON(o.results, t.folder(), r); err != nil {
			return err
		}
	}
	return page(ctx, o)
}

// page writes the tables of the results into the documentation.
func page(_ context.Context, o options) error {
	var rows, scales []*result
	for _, t := range slices.Concat(tasks, scaledTasks("")) {
		r := &result{}
		err := readJSON(o.results, t.folder(), r)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r.summarize()
		if t.scale != 0 {
			scales = append(scales, r)
		} else {
			rows = append(rows, r)
		}
	}
	probes, err := readProbes(o.results)
	if err != nil {
		return err
	}
	return writeBetween(o.docs, tables(rows, scales, probes))
}
