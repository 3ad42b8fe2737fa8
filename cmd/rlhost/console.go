package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/runner"
)

// onScreen returns the program with its output on one screen where standard output is a terminal, so that what is
// said meanwhile stands above the live line and not in it.
func (p *program) onScreen(json bool) *program {
	if p.out != os.Stdout || json || !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) ||
		os.Getenv("TERM") == "dumb" {
		return p
	}
	next := *p
	next.screen = runner.NewScreen(os.Stdout)
	next.out = next.screen
	if p.err == os.Stderr && term.IsTerminal(int(os.Stderr.Fd())) {
		next.err = next.screen
	}
	return &next
}

// output says where and how the runner reports progress: a live line on a terminal, plain lines elsewhere, JSON on
// request.
func (t *training) output() runner.Output {
	return runner.Output{
		Out: t.out, Terminal: t.screen != nil, JSON: t.command.JSON, Color: t.colored(), Queues: t.queues,
		Width: func() int {
			width, _, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 80
			}
			return width
		},
	}
}

// colored reports whether to use colour: as the flag says, else on a terminal, unless NO_COLOR is set.
func (p *program) colored() bool {
	switch p.cli.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return p.screen != nil && os.Getenv("NO_COLOR") == ""
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
	hashes, err := t.pluginHashes()
	if err != nil {
		return err
	}
	d, mode := t.definition(), "async"
	if t.graph.Synchronous {
		mode = "sync"
	}
	kernels := d.Backend.Kernels()
	t.know(t.before.EnvSteps, t.before.PolicyVersion)
	exact, why := t.exactness(hashes, kernels)
	err = t.run.Update(func(i *runs.Info) {
		i.Rlhost, i.Seed, i.Mode, i.Kernel = hostabi.Release, t.graph.Run.Seed, mode, kernels
		i.Plugins = hashes
		i.Python = pythonOf(t.graph)
		i.Policies = map[string]any{t.graph.Policies[0].Name: d.Network}
	})
	if err != nil {
		return err
	}
	if t.resumed {
		if err := t.describeResume(exact, why); err != nil {
			return err
		}
	}
	if t.command.JSON {
		return json.NewEncoder(t.out).Encode(map[string]any{
			"event": "start", "run": t.run.ID(), "seed": t.graph.Run.Seed, "mode": mode, "kernels": kernels,
			"pipeline": t.graph.Hash(), "plugins": hashes,
		})
	}
	fmt.Fprintf(t.out, "%s run %s  seed %d  %s  kernels %s  pipeline %.8s\n", time.Now().Format(time.TimeOnly), t.run.Dir,
		t.graph.Run.Seed, mode, kernels, t.graph.Hash())
	return nil
}

// pluginHashes are the hashes of all environments, by the name that the run's own pipeline has for them.
func (t *training) pluginHashes() (map[string]string, error) {
	kept, err := movedTo(t.run.Dir, t.graph, t.parts.Builtins)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, e := range kept.Envs {
		plugin, err := t.pipeline.Env(e.Name)
		if err != nil {
			return nil, err
		}
		hashes[e.Table.Use] = plugin.Hash()
	}
	return hashes, nil
}

// pythonOf returns the Python that a pipeline's environments of Gymnasium are played with, or nothing.
func pythonOf(g *graph.Graph) string {
	for _, e := range g.Envs {
		if t := e.Table.Plugin; t != nil && g.Plugin(t.Name) == nil {
			return t.Path
		}
	}
	return ""
}
