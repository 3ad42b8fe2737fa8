package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/runner"
)

// output says where and how the runner reports progress: a live line on a terminal, plain lines elsewhere, JSON on
// request.
func (t *training) output() runner.Output {
	stdout := int(os.Stdout.Fd())
	terminal := t.out == os.Stdout && term.IsTerminal(stdout) && term.IsTerminal(int(os.Stdin.Fd()))
	color := terminal && os.Getenv("NO_COLOR") == ""
	switch t.cli.Color {
	case "always":
		color = true
	case "never":
		color = false
	}
	return runner.Output{
		Out: t.out, Terminal: terminal && !t.command.JSON, JSON: t.command.JSON, Color: color,
		Width: func() int {
			width, _, err := term.GetSize(stdout)
			if err != nil {
				return 80
			}
			return width
		},
		Queues: t.queues,
	}
}

// queues tells how many messages wait on each wire that has any.
func (t *training) queues() []runner.Queue {
	var queues []runner.Queue
	for _, w := range t.pipeline.Counters() {
		if w.Queued+w.Parked > 0 {
			_, to, _ := strings.Cut(w.Wire, " → ")
			queues = append(queues, runner.Queue{Name: to, Queued: w.Queued + w.Parked, Depth: w.Depth})
		}
	}
	return queues
}

// describe writes what the run is made of into its folder and tells its name.
func (t *training) describe() error {
	d := t.definition()
	plugins := map[string]string{}
	for _, e := range t.graph.Envs {
		plugin, err := t.pipeline.Env(e.Name)
		if err != nil {
			return err
		}
		plugins[e.Table.Use] = plugin.Hash()
	}
	mode := "async"
	if t.graph.Synchronous {
		mode = "sync"
	}
	err := t.run.Update(func(i *runs.Info) {
		i.Rlhost, i.Seed, i.Mode, i.Kernel = version, t.graph.Run.Seed, mode, d.Backend.Kernels()
		i.Plugins = plugins
		i.Policies = map[string]any{t.graph.Policies[0].Name: d.Network}
	})
	if err != nil {
		return err
	}
	if t.command.JSON {
		return json.NewEncoder(t.out).Encode(map[string]any{
			"event": "start", "run": t.run.ID(), "seed": t.graph.Run.Seed, "mode": mode, "kernels": d.Backend.Kernels(),
			"pipeline": t.graph.Hash(), "plugins": plugins,
		})
	}
	fmt.Fprintf(t.out, "%s run %s  seed %d  %s  kernels %s  pipeline %.8s\n", time.Now().Format(time.TimeOnly), t.run.Dir,
		t.graph.Run.Seed, mode, d.Backend.Kernels(), t.graph.Hash())
	return nil
}
