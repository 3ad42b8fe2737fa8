// Requests trains CartPole in the working folder, with 64 components in the same process that answer a request: bench/python/request_bench.py asks them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/sdk/component"
)

const pipeline = `rlhost = 1
[run]
name = "requests"
stop = { wall_time = "1h" }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[component.oracle]
kind = "oracle"
count = 64
`

type question struct {
	Times int `json:"times"`
}

func oracle() component.Component {
	asked := 0
	return &component.Declared{Requests: []component.Question{
		component.Asked("total", "requests so far", func(q question) (int, error) {
			asked++
			return asked * q.Times, nil
		}),
	}}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := rlhost.Options{Text: pipeline, Components: map[string]func() component.Component{"oracle": oracle}}
	if _, err := rlhost.Train(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
