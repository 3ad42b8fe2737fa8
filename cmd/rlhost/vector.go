package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/vector"
)

type vectorCommand struct {
	Pipeline  string `arg:"" help:"Pipeline file with the environment's table; - is standard input."`
	Envs      int    `default:"1" help:"Environments to step at a time."`
	Autoreset string `enum:"same_step,next_step" default:"same_step" help:"When an episode begins after the end of another."`
	Alone     bool   `help:"Step each environment as soon as it has an action."`
	Files     []int  `required:"" placeholder:"FD" help:"Open files: the rings of requests and of replies, the connection, and the segment for resets."`
	Attached  int    `required:"" placeholder:"PID" help:"The program that steps them. Its end is the end of this one."`
}

// Help describes the purpose of vector.
func (c *vectorCommand) Help() string {
	return `For programs: rlhost.make_vec of Python calls it, with the files that the two share.`
}

// modesOf are the modes of autoreset by name.
var modesOf = map[string]hostabi.Autoreset{"same_step": hostabi.SameStep, "next_step": hostabi.NextStep}

// Run steps environments for the caller.
func (c *vectorCommand) Run(p *program) error {
	if c.Envs < 1 || len(c.Files) != 4 {
		return fail(exitUsage, fmt.Errorf("--envs %d with %d files: want 1 or more, with 4 files", c.Envs, len(c.Files)))
	}
	files := vector.Files{Requests: c.Files[0], Replies: c.Files[1], Wire: c.Files[2], Resets: c.Files[3]}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := ipc.WhenEnds(c.Attached, stop); err != nil {
		return fail(exitUsage, fmt.Errorf("--attached: %w", err))
	}
	return p.withGraph(c.Pipeline, nil, func(g *graph.Graph, parts *graph.Parts) error {
		x := &g.Envs[0]
		plugin, err := parts.Load(ctx, x.Name, x.Table, g.Dir)
		if err != nil {
			return pluginError(err)
		}
		spec, mode := plugin.Spec(), modesOf[c.Autoreset]
		if spec.Autoreset&mode == 0 {
			err = fail(exitPlugin, fmt.Errorf("%s offers no %s", spec.Name, c.Autoreset))
		} else {
			err = vector.Serve(ctx, plugin, vector.Options{Envs: c.Envs, Autoreset: mode, Alone: c.Alone}, files)
		}
		return memoryHelp(errors.Join(err, plugin.Close()), "num_envs")
	})
}
