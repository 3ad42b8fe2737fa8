package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/picture"
	"github.com/rlhost/rlhost/pipeline/placement"
)

type graphCommand struct {
	Pipeline string   `arg:"" optional:"" default:"pipeline.toml" predictor:"pipeline" help:"Pipeline file."`
	Format   string   `enum:"ascii,dot,mermaid" default:"ascii" help:"ascii, dot or mermaid."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file. May be repeated."`
	Hosts    string   `sep:"none" placeholder:"FILE|LIST" help:"Show which host has which instances: a file with a line 'NAME slots=N KEY=VALUE' for each host, the run's own first, or such a list with commas."`
}

// Help shows how graph is called.
func (c *graphCommand) Help() string {
	return `Components, and the signals and slots that are wired; or, with --hosts, where their instances belong. Nothing is started, and no host is asked.

  rlhost graph
  rlhost graph --format dot | dot -Tsvg > pipeline.svg
  rlhost graph --hosts 'home slots=2, b slots=8 gpu=h100'`
}

// Run draws the pipeline, or shows where it is placed.
func (c *graphCommand) Run(p *program) error {
	var hosts []placement.Host
	if c.Hosts != "" {
		var err error
		if hosts, err = c.hosts(); err != nil {
			return fail(exitUsage, err)
		}
	}
	return p.withGraph(c.Pipeline, c.Set, func(g *graph.Graph, _ *graph.Parts) error {
		if c.Hosts != "" {
			plan := placement.Place(g, hosts, nil)
			printPlan(p.out, g, hosts, plan)
			return p.printProblems(plan.Problems(g).Err())
		}
		if err := picture.Draw(p.out, g, c.Format); err != nil {
			return fail(exitUsage, err)
		}
		return nil
	})
}

// maxHosts bounds a file of hosts, in bytes.
const maxHosts = 1 << 20

// hosts reads the file, or the list.
func (c *graphCommand) hosts() ([]placement.Host, error) {
	text, source := c.Hosts, "--hosts"
	switch src, err := files.Read(c.Hosts, maxHosts); {
	case err == nil:
		text, source = string(src), c.Hosts
	case !errors.Is(err, fs.ErrNotExist), !strings.ContainsAny(text, " ,"):
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	hosts, err := placement.ParseHosts(text)
	if err == nil && len(hosts) == 0 {
		err = errors.New("it names no host")
	}
	for _, h := range hosts {
		if h.Slots == placement.Unknown && err == nil {
			err = fmt.Errorf("host %q has no slots=N, and nobody asks how many processors it has", h.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return hosts, nil
}

// printPlan prints a line for each host.
func printPlan(w io.Writer, g *graph.Graph, hosts []placement.Host, plan *placement.Plan) {
	for _, h := range hosts {
		fmt.Fprintf(w, "host %s, %d of %d slots: %s\n", printable(h.Name), plan.Taken(g, h.Name), h.Slots, instances(g, plan.On(g, h.Name)))
	}
}

// instances writes the instances of a host: rollout[0-3] inference[0-3] learner.
func instances(g *graph.Graph, list []placement.Instance) string {
	var names []string
	for i := 0; i < len(list); {
		first, last := list[i], i
		for last+1 < len(list) && list[last+1] == (placement.Instance{Component: first.Component, Index: list[last].Index + 1}) {
			last++
		}
		name := g.Component(first.Component).InstanceName(first.Index)
		if last > i {
			name = fmt.Sprintf("%s[%d-%d]", first.Component, first.Index, list[last].Index)
		}
		names, i = append(names, name), last+1
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " ")
}
