package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/markdown"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// environmentsAbout says what each built-in environment is about, as its module does not.
var environmentsAbout = map[string]string{
	"acrobot@1":               "Gymnasium's Acrobot-v1",
	"bandit@1":                "which arm always pays? Best 1, random 0.625",
	"cartpole-positions@1":    "CartPole with hidden velocities: needs memory",
	"cartpole@1":              "Gymnasium's CartPole-v1",
	"chase@1":                 "agents that chase each other",
	"connectfour@1":           "the board game, with a mask of legal moves; agents take turns",
	"continuous@1":            "do two numbers steer a point to its goal? Best 1, random 0.31",
	"memory@1":                "is a cue of the first step remembered? Needs a recurrent layer. Best 1, random 0.5",
	"minatar-breakout@1":      "Breakout of MinAtar 1.0.15, with sticky actions",
	"minatar-freeway@1":       "Freeway of MinAtar 1.0.15, with sticky actions",
	"mountaincar@1":           "Gymnasium's MountainCar-v0",
	"mountaincarcontinuous@1": "Gymnasium's MountainCarContinuous-v0",
	"password@1":              "does the policy keep a five-digit password that it once guessed? Best 1, random 0.031",
	"pendulum-positions@1":    "Pendulum with hidden velocity: needs memory",
	"pendulum@1":              "Gymnasium's Pendulum-v1",
	"snake@1":                 "snakes on a board; agents drop out one by one",
	"spaces@1":                "is each of three observations understood, and each of three questions answered? Best 1, random 0.444",
	"squared@1":               "does the policy go to a target that it sees? Best 1, random 0.19",
	"squash@1":                "a ball game in grey pictures, for measuring speed",
	"stochastic@1":            "is the policy as random as it has to be? Best 0.954 with sampled actions, random 0.667",
	"tag@1":                   "three hunters and a prey: two groups of agents",
	"taxi@1":                  "Gymnasium's Taxi-v4, with a mask of legal actions",
	"tuple@1":                 "are three actions of three kinds taken at once? Best 1, random 0.583",
}

// environmentsPage is the catalogue of environments and wrappers.
func environmentsPage(string) (string, error) {
	parts, engines := builtin.New(builtin.Options{})
	rows, args, err := catalogue(parts)
	if err = errors.Join(err, engines.Close()); err != nil {
		return "", err
	}
	return "# Environments\n\n" + markdown.Generated + "\n" + markdown.Prose(environmentsIntro) +
		"\n## Built-in environments\n\n" + markdown.Table([]string{"Name", "Observation", "Action", "Agents", "Episode limit", "About"}, rows) +
		"\n" + markdown.Prose(environmentsNotes) +
		"\n## Arguments\n\n" + markdown.Prose(argumentsIntro) + "\n" + markdown.Table([]string{"Environment", "Argument", "Takes", "Default", "Meaning"}, args) +
		"\n## Example environments\n\n" + markdown.Prose(examplesIntro) + "\n" + markdown.Table([]string{"Environment", "Languages", "Folder"}, exampleRows()) +
		"\n## Environments of Python\n\n" + markdown.Prose(pythonIntro) +
		"\n## Wrappers\n\n" + markdown.Prose(wrappersIntro) + "\n" + markdown.Table(keysHeader, keyRows("wrap", wrap.Describe())) +
		"\n### Modules\n\n" + markdown.Prose(modulesIntro), nil
}

// catalogue has a row for each built-in environment, and one for each argument that its module describes.
func catalogue(parts *graph.Parts) (rows, args [][]string, err error) {
	for _, name := range parts.Builtins {
		about, ok := environmentsAbout[name]
		if !ok {
			return nil, nil, fmt.Errorf("environmentsAbout has no %s", name)
		}
		source := env.DefaultSource()
		source.Use = name
		p, err := parts.Load(context.Background(), "", graph.EnvTable{Source: source}, ".")
		if err != nil {
			return nil, nil, err
		}
		s, agents, limit := p.Spec(), 1, ""
		if s.HasAgents() {
			agents = s.Agents()
		}
		if s.EpisodeLimit > 0 {
			limit = strconv.Itoa(s.EpisodeLimit)
		}
		rows = append(rows, []string{markdown.Code(name), s.Spaces(hostabi.RoleObservation), s.Spaces(hostabi.RoleAction), strconv.Itoa(agents), limit, about})
		for _, a := range envcheck.Arguments(s) {
			args = append(args, []string{markdown.Code(name), markdown.Code(a.Name), a.Takes, markdown.Code(a.Default), markdown.Escape(a.Doc)})
		}
		if err := p.Close(); err != nil {
			return nil, nil, err
		}
	}
	return rows, args, nil
}

// exampleRows has a row for each environment of the examples that is not built in.
func exampleRows() (rows [][]string) {
	languages, folders, builtIn := map[string][]string{}, map[string][]string{}, map[string]bool{}
	for _, g := range plugins.Guests() {
		if g.Component {
			continue
		}
		builtIn[g.Env] = builtIn[g.Env] || g.Builtin != ""
		dir := path.Dir(g.Module)
		if !slices.Contains(languages[g.Env], g.Language.Name) {
			languages[g.Env] = append(languages[g.Env], g.Language.Name)
			folders[g.Env] = append(folders[g.Env], fmt.Sprintf("[%s](../../examples/plugins/%s)", dir, dir))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(languages)) {
		if !builtIn[name] || len(languages[name]) > 1 {
			rows = append(rows, []string{name, strings.Join(languages[name], ", "), strings.Join(folders[name], ", ")})
		}
	}
	return rows
}

const environmentsIntro = "The environments that rlhost has, and the wrappers around any environment.\n\n" +
	"A pipeline names a built-in environment by `use = \"cartpole@1\"` in an `[env.NAME]` table.\n" +
	"`rlhost envs` prints the first table, and `rlhost check NAME` checks one of them.\n\n" +
	"Each is a module in WebAssembly with its source in [examples/plugins](../../examples/plugins)."

const environmentsNotes = `A recording of Gymnasium or MinAtar checks the environments that are named after theirs.
Random numbers are rlhost's own, so a seed starts another episode here than there.

The environments with a best score are the sanity set.
Each asks one question of a learner; 50,000 env steps are enough for a return of 0.9.`

const argumentsIntro = "Set arguments with `args = { … }` in the `[env.NAME]` table, or with `--set env.NAME.args.ARGUMENT=VALUE`.\n" +
	"The table has the arguments that modules describe; some modules take further ones, which the first comment of their source names."

const examplesIntro = "These have sources in the repository and are not built in, or have sources in several languages.\n" +
	"Build one with `go run ./examples/plugins/build FOLDER`, and name it by its path."

const pythonIntro = "`use = \"gymnasium:ID\"` runs an environment of Gymnasium, and `use = \"pettingzoo:MODULE\"` one of PettingZoo.\n" +
	"Both need Python and the package of [sdk/python](../../sdk/python/README.md); the [tutorial](../start/gymnasium.md) shows how.\n\n" +
	"Their `args` go to `gymnasium.make`, but for two of `gymnasium:`.\n" +
	"`drop = [\"mission\"]` leaves parts of a Dict observation out.\n" +
	"`gym_wrap = [\"minigrid.wrappers:ImgObsWrapper\"]` lists wrappers of Gymnasium, the innermost first; a table such as\n" +
	"`{ use = \"gymnasium.wrappers:FrameStackObservation\", stack_size = 4 }` has a wrapper's arguments.\n\n" +
	"`workers` processes share the environments of a split, and `threads` of each process step them side by side.\n" +
	"Workers of one split wait for each other in each step; in mode async, more `splits` with one worker each do not.\n" +
	"A process that has more memory than `limits.memory` is replaced, which counts toward `max_restarts`;\n" +
	"`rlhost status` says how much memory they have."

const wrappersIntro = "The key `wrap` of an environment is a list of tables, each with one of these keys.\n" +
	"The first one is next to the environment, and the policy sees the output of the last one."

const modulesIntro = "A wrapper of rewards, actions or observations can be a module of your own: `{ use = \"./center.wasm\" }`.\n" +
	"The keys from `use` on are for it, and `args` is its own table.\n\n" +
	"A failed call leaves the step as it was without the module, and `env/wrapper_faults` counts it."
