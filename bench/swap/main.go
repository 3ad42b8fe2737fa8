package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// options are the command line's.
type options struct {
	program string
	changes int
	rounds  int
	guests  string
}

func main() {
	o := options{}
	flag.StringVar(&o.program, "rlhost", "bin/rlhost", "program to measure")
	flag.IntVar(&o.changes, "changes", 0, "how many changes; default 1,000 for pauses and 10,000 for many")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of throughput")
	flag.StringVar(&o.guests, "guests", "examples/plugins", "folder of the cartpoles in C, Rust and Go")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: swap [flags] pauses | wrappers | many | throughput | components | shaper\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	parts := map[string]func(context.Context, options) error{"pauses": pauses, "wrappers": wrappers, "many": many, "throughput": throughput, "components": components, "shaper": shaper}
	part := parts[flag.Arg(0)]
	if part == nil || flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := part(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "swap:", err)
		os.Exit(1)
	}
}
