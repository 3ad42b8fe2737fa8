package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

type envsCommand struct {
	JSON bool `name:"json" help:"Print one JSON object per line."`
}

// Help says how an environment of the list is used.
func (c *envsCommand) Help() string {
	return `A pipeline names one by use = "cartpole@1" in an [env] table. rlhost check NAME says what each argument takes;
some modules take arguments that they do not describe.

Environments of Gymnasium and PettingZoo run in Python: use = "gymnasium:CartPole-v1", or
use = "pettingzoo:pettingzoo.classic.connect_four_v3".

  rlhost envs
  rlhost train --set env.cartpole.use=acrobot@1`
}

// builtinEnv is a row of the catalogue.
type builtinEnv struct {
	Name         string              `json:"name"`
	Observation  string              `json:"observation"`
	Action       string              `json:"action"`
	Agents       int                 `json:"agents"`
	EpisodeLimit int                 `json:"episode_limit"` // 0: the environment has none
	Args         []envcheck.Argument `json:"args"`
}

// Run prints the catalogue.
func (c *envsCommand) Run(p *program) error {
	return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		rows := [][]string{{"environment", "observation", "action", "agents", "episode limit", "arguments"}}
		for _, name := range parts.Builtins {
			e, err := describe(parts, name)
			if err != nil {
				return pluginError(err)
			}
			if c.JSON {
				if err := p.encode(e); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, e.row())
		}
		if c.JSON {
			return nil
		}
		return p.forResults().Table(rows)
	})
}

// describe loads a built-in environment and returns its row.
func describe(parts *graph.Parts, name string) (builtinEnv, error) {
	source := env.DefaultSource()
	source.Use = name
	p, err := parts.Load(context.Background(), "", graph.EnvTable{Source: source}, ".")
	if err != nil {
		return builtinEnv{}, err
	}
	spec := p.Spec()
	e := builtinEnv{
		Name: name, Observation: spec.Spaces(hostabi.RoleObservation), Action: spec.Spaces(hostabi.RoleAction), Agents: 1,
		EpisodeLimit: spec.EpisodeLimit, Args: envcheck.Arguments(spec),
	}
	if spec.HasAgents() {
		e.Agents = spec.Agents()
	}
	return e, p.Close()
}

// row is the environment as a line of the table.
func (e *builtinEnv) row() []string {
	limit := ""
	if e.EpisodeLimit > 0 {
		limit = strconv.Itoa(e.EpisodeLimit)
	}
	var args []string
	for _, a := range e.Args {
		args = append(args, fmt.Sprintf("%s=%s", a.Name, cmp.Or(a.Default, "…")))
	}
	return []string{e.Name, e.Observation, e.Action, strconv.Itoa(e.Agents), limit, strings.Join(args, " ")}
}
