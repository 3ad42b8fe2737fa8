package graph

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trace"
)

// runFile is the [run] table as written in the file.
type runFile struct {
	Name       string             `toml:"name" doc:"Name of the run; its folder is DIR/NAME/NUMBER." range:"letters, digits, _ and -, a letter first" default:"required"`
	Seed       uint64             `toml:"seed" doc:"Seed of everything random in the run." range:"0 or more"`
	Dir        string             `toml:"dir" doc:"Folder that holds the folders of runs."`
	Policy     *string            `toml:"policy" doc:"Policy that stop rules, the best checkpoint and the evaluation are about." range:"a [policy] table" default:"the only learned one, else main"`
	Record     int64              `toml:"record,bytes,omitempty" doc:"Most bytes of the actions that the environments got, for rlhost replay, in recording/ of the run's folder; 0 = none." range:"0, or 1MiB or more"`
	Stop       component.StopRule `toml:"stop"`
	Checkpoint Checkpoint         `toml:"checkpoint"`
	Evaluation Evaluation         `toml:"evaluation"`
	Traces     string             `toml:"traces,omitempty" doc:"File in the run's folder, or address of a server, that gets OpenTelemetry's traces of single datasets in OTLP's JSON; empty = none." range:"a name such as traces.jsonl, or http://HOST:4318"`
}

func defaultRun() runFile {
	return runFile{
		Seed: 1, Dir: "runs", Stop: component.StopRule{Window: 100},
		Checkpoint: Checkpoint{Every: 30 * time.Second, Keep: 3, Best: true},
		Evaluation: Evaluation{Episodes: 100, Seed: 1, Greedy: true, Share: 0.1},
	}
}

// runTable reads [run].
func (k *checker) runTable() {
	run := defaultRun()
	n := k.root.at("run")
	if n == nil {
		if !k.bad["run"] {
			k.Add("E004", k.top(), "add [run] with a name", "the table [run] is missing")
		}
		return
	}
	d := &tableDecoder{report: &k.Report, n: n, path: "run"}
	d.decode(&run) // errors have been noted
	k.checkRun(n, &run)
	checkStops(k, lookup(n, "stop.policies"), run.Stop.Policies)
	k.graph.Run = RunTable{Name: run.Name, Seed: run.Seed, Dir: run.Dir, Record: run.Record, Stop: run.Stop,
		Checkpoint: run.Checkpoint, Evaluation: run.Evaluation, Traces: run.Traces}
	if run.Policy != nil {
		k.graph.Run.Policy = k.reference(n, "policy")
	}
}

func (k *checker) checkRun(n *node, run *runFile) {
	name := n.at("name")
	switch text, ok := name.text(); {
	case name == nil:
		k.Add("E004", n.key, "", "`name` is missing in [run]")
	case ok && !validName(text):
		k.Add("E005", name.val, "use letters, digits, _ and -, with a letter first", "`name` is %q", text)
	}
	if dir := n.at("dir"); dir != nil && run.Dir == "" {
		if _, ok := dir.text(); ok {
			k.Add("E005", dir.val, `the default is "runs"`, "`dir` is empty")
		}
	}
	if _, err := trace.IsAddress(run.Traces); err != nil {
		k.Add("E005", n.at("traces").val, `write "http://HOST:4318", or a file such as "traces.jsonl"`, "`traces`: %v", err)
	}
	if record := n.at("record"); record != nil && run.Record != 0 && run.Record < tape.Least {
		k.Add("E005", record.val, `0 records nothing, "1GiB" hours of a small environment`, "`record` is %s, want %s or more", table.FormatBytes(run.Record), table.FormatBytes(tape.Least))
	}
	if policy := n.at("policy"); policy != nil && run.Policy != nil && *run.Policy == "" {
		k.Add("E005", policy.val, "leave it out, or name one of the [policy] tables", "`policy` is empty")
	}
	k.atLeast(n, "stop.window", run.Stop.Window, 1)
	k.atLeast(n, "checkpoint.keep", run.Checkpoint.Keep, 1)
	k.atLeast(n, "evaluation.episodes", run.Evaluation.Episodes, 1)
	k.atMost(n, "evaluation.episodes", run.Evaluation.Episodes, MaxEpisodes)
	k.atLeast(n, "evaluation.max_steps", run.Evaluation.MaxSteps, 0)
	if wall := lookup(n, "evaluation.wall_time"); wall != nil && run.Evaluation.WallTime < 0 {
		k.Add("E005", wall.val, "", "`evaluation.wall_time` is %v, want 0s or more", run.Evaluation.WallTime)
	}
	k.atLeast(n, "evaluation.every_env_steps", run.Evaluation.EveryEnvSteps, 0)
	k.atLeast(n, "evaluation.video_every_env_steps", run.Evaluation.VideoEveryEnvSteps, 0)
	k.atLeast(n, "checkpoint.keep_every_env_steps", run.Checkpoint.KeepEveryEnvSteps, 0)
	if share := lookup(n, "evaluation.share"); share != nil && !(run.Evaluation.Share > 0 && run.Evaluation.Share <= 1) {
		k.Add("E005", share.val, "0.1 is a tenth of one processor", "`evaluation.share` is %g, want more than 0 and 1 at most", run.Evaluation.Share)
	}
}

// checkStops checks the rules for single policies.
func checkStops(c *checker, n *node, rules map[string]component.PolicyRule) {
	for name, rule := range rules {
		of, at := c.root.at("policy").at(name), n.table[name]
		switch {
		case of == nil && !c.bad["policy"]:
			c.Add("E011", at.key, table.DidYouMean(name, "%q", "declared", c.declared("policy")), "policy %q is not declared", name)
		case at.kind == tableNode && len(at.names) == 0:
			c.Add("E004", at.key, "ask for `return` or `env_steps`", "there is no rule in `stop.policies.%s`", name)
		case rule.EnvSteps > 0 && of != nil && roleOf(of) != Learned:
			c.Add(codeGiven, at.at("env_steps").key, "leave it out: `return` can be asked of any policy", "`env_steps` of policy %q, which nobody learns", name)
		}
	}
}

// envFile is an [env.NAME] table as written in the file.
type envFile struct {
	env.Source
	Swap string `toml:"swap" doc:"Whether a swap or a reload may replace it." range:"always, never"`
	buildKeys
}

func envDefaults() envFile {
	return envFile{Source: env.DefaultSource(), Swap: string(SwapAlways), buildKeys: defaultBuild()}
}

// envReader reads the [env.NAME] tables.
type envReader struct{ check *checker }

// envTables reads [env.NAME].
func (r *envReader) envTables() {
	for _, table := range r.check.named("env") {
		name, n := table.name, table.node
		f := envDefaults()
		d := (&tableDecoder{report: &r.check.Report, n: n, path: "env." + name}).skipping("args", "keys")
		d.decode(&f) // errors have been noted
		_, _, native := SplitUse(f.Use)
		f.Name, f.Args = name, map[string]string{}
		if a := n.at("args"); a != nil {
			r.check.flatten(a, "env."+name+".args", "", native, f.Args)
		}
		if keys := n.at("keys"); keys != nil {
			f.Keys = map[string]string{}
			r.check.flatten(keys, "env."+name+".keys", "", true, f.Keys)
		}
		r.checkUse(n, name, f.Use)
		r.check.checkSHA(n, f.SHA256)
		(&buildReader{r.check}).checkKeys("env", n, "env."+name, &f.buildKeys)
		r.checkRuntime(n, &f)
		(&placeReader{r.check}).env(n, name, &f, native || f.Runtime == env.InProcess)
		r.checkWrappers(n, name)
		e := Env{Name: name, Swap: r.check.swapRule(n, f.Swap), at: n.key, UseAt: n.key, SHAAt: n.key, table: n}
		f.SHA256 = strings.ToLower(f.SHA256)
		e.Table.Source = f.Source
		if plugin, rest, ok := r.envPlugin(f.Use); ok {
			e.Table.Plugin, e.Table.Use, e.Table.Runtime = plugin, rest, env.InHost
		}
		if u := n.at("use"); u != nil {
			e.UseAt = u.val
		}
		if s := n.at("sha256"); s != nil {
			e.SHAAt = s.val
		}
		r.check.graph.Envs = append(r.check.graph.Envs, e)
	}
}

// checkWrappers checks each table of the key wrap; that they are tables has been checked.
func (r *envReader) checkWrappers(n *node, name string) {
	list := n.at("wrap")
	if list == nil || r.check.parts.CheckWrapper == nil {
		return
	}
	for i, item := range list.items {
		if item.kind != tableNode {
			continue
		}
		at, path := *item, fmt.Sprintf("env.%s.wrap[%d]", name, i)
		at.key = item.val
		d := &tableDecoder{report: &r.check.Report, n: &at, path: path}
		r.check.configErrors(&at, path, &d.faults, r.check.parts.CheckWrapper(d.note))
	}
}

var hexSHA = regexp.MustCompile("^[0-9a-fA-F]{64}$")

func (k *checker) checkSHA(table *node, sha string) {
	if sha != "" && !hexSHA.MatchString(sha) {
		k.Add("E005", table.at("sha256").val, "rlhost inspect FILE prints it", "`sha256` is not 64 hexadecimal digits")
	}
}

// checkUse checks an environment's source as far as possible without opening it.
func (r *envReader) checkUse(env *node, name, use string) {
	n := env.at("use")
	if n == nil {
		r.check.Add("E004", env.key, fmt.Sprintf("name a built-in environment or a file: use = %q", "./"+name+".wasm"),
			"`use` is missing in [env.%s]", name)
		return
	}
	if _, ok := n.text(); !ok {
		return
	}
	if plugin, _, ok := SplitUse(use); ok {
		r.checkEnvPlugin(n, plugin)
		return
	}
	if isPath(use) || slices.Contains(r.check.parts.Builtins, use) {
		return
	}
	r.check.Add("E010", n.val, r.unknownUse(use), "%q is not a built-in environment", use)
}

// unknownUse is the help for a name that is no built-in environment.
func (r *envReader) unknownUse(use string) string {
	builtins := r.check.parts.Builtins
	uses := LikelyUse(use, builtins)
	if near, ok := table.Nearest(use, builtins); len(uses) == 0 && ok {
		uses = []string{near}
	}
	list := "built in: " + strings.Join(builtins, ", ")
	switch len(uses) {
	case 0:
		return "a path has a slash in it: ./" + use + "; " + list
	case 1:
		return fmt.Sprintf("did you mean %q? %s", uses[0], list)
	}
	return fmt.Sprintf("did you mean %q, or the built-in environment %q?", uses[0], uses[1])
}

// checkEnvPlugin checks the first part of use = "PLUGIN:ENVIRONMENT".
func (r *envReader) checkEnvPlugin(n *node, name string) {
	known := slices.Concat(r.check.declared("plugin"), slices.Sorted(maps.Keys(r.check.parts.EnvPlugins)))
	if slices.Contains(known, name) {
		return
	}
	help := table.DidYouMean(name, "%q", "plugins", known)
	if help == "" {
		help = "declare it: [plugin." + name + "]"
	}
	r.check.Add("E011", n.val, help, "plugin %q is not declared", name)
}

// SplitUse divides use = "PLUGIN:ENVIRONMENT"; ok is false if it names no native plugin, such as a path.
func SplitUse(use string) (plugin, env string, ok bool) {
	plugin, env, ok = strings.Cut(use, ":")
	return plugin, env, ok && validName(plugin)
}

// envPlugin returns the native plugin that use = "PLUGIN:ENVIRONMENT" names, and the environment. A declared
// plugin takes precedence over a plugin that needs no declaration.
func (r *envReader) envPlugin(use string) (*PluginTable, string, bool) {
	name, rest, ok := SplitUse(use)
	if !ok {
		return nil, "", false
	}
	if p := r.check.graph.Plugin(name); p != nil {
		return &p.Table, rest, true
	}
	if p, ok := r.check.parts.EnvPlugins[name]; ok {
		p.Name = name
		return &p, rest, true
	}
	return nil, "", false
}

func (r *envReader) checkRuntime(n *node, f *envFile) {
	if child := n.at("runtime"); child != nil && f.Runtime != env.InHost && f.Runtime != env.InProcess {
		if _, ok := child.text(); ok {
			r.check.Add("E010", child.val, "runtimes of environments: host, process", "unknown runtime %q", f.Runtime)
		}
	}
	r.check.atLeast(n, "workers", f.Workers, 1)
	r.check.atLeast(n, "threads", f.Threads, 1)
	_, _, native := SplitUse(f.Use)
	if child := n.at("data"); child != nil && native && f.Data != "" {
		r.check.Add("E005", child.key, "leave it out: a native program opens files by itself", "`data` is for modules")
	}
	if child := n.at("threads"); child != nil && f.Threads > maxThreads {
		r.check.Add("E005", child.val, "", "`threads` is %d, must be %d or less", f.Threads, maxThreads)
	}
	if child := n.at("threads"); child != nil && f.Threads > 1 && !native {
		r.check.Add("E005", child.val, "leave it out: give them more processes by runtime = \"process\" and workers", "`threads` is %d, but a module has one thread", f.Threads)
	}
	if child := n.at("workers"); child != nil && f.Workers > 1 && f.Runtime == env.InHost && !native {
		r.check.Add("E005", child.val, `add runtime = "process"`, "`workers` is %d, but the environments run in the host", f.Workers)
	}
}

// maxThreads bounds the threads of each process of environments, so that a slip of the finger does not take all memory.
const maxThreads = 256

// flatten turns nested tables of scalars into strings by dotted key, and with lists also lists, into JSON.
func (k *checker) flatten(n *node, path, prefix string, lists bool, into map[string]string) {
	if n.kind != tableNode {
		k.wrong(n, path, "a table", "")
		return
	}
	for _, name := range n.names {
		child := n.table[name]
		key := prefix + name
		switch v := child.value.(type) {
		case string:
			into[key] = v
		case int64:
			into[key] = strconv.FormatInt(v, 10)
		case float64:
			into[key] = strconv.FormatFloat(v, 'g', -1, 64)
		case bool:
			into[key] = strconv.FormatBool(v)
		default:
			if child.kind == tableNode {
				k.flatten(child, path+"."+name, key+".", lists, into)
				continue
			}
			if text, err := table.JSON(child); lists && child.kind == arrayNode && err == nil {
				into[key] = string(text)
				continue
			}
			k.wrong(child, path+"."+name, "a string, a number, true, false or a table of these", "")
		}
	}
}

// swapFile is the [swap] table as written in the file.
type swapFile struct {
	At         string        `toml:"at" doc:"When the old version gives way." range:"step, trajectory, episode, now"`
	TrialEnvs  int           `toml:"trial_envs" doc:"Environments of the trial before a swap; 0 = no trial." range:"0 to 4096" unit:"environments"`
	TrialSteps int           `toml:"trial_steps" doc:"Most env steps of each environment of the trial." range:"1 or more" unit:"env steps"`
	Slower     float64       `toml:"slower" doc:"Refuses a version that is slower by more than this factor; 0 = refuses none." range:"0, or 1 or more"`
	Probation  time.Duration `toml:"probation" doc:"How long a new version is watched; at its first fault the old one runs again." range:"0 or more"`
	KeepState  bool          `toml:"keep_state" doc:"Carries running episodes, or a component's state, over to the new version."`
}

func defaultSwap() swapFile {
	return swapFile{At: component.AtTrajectory.String(), TrialEnvs: 4, TrialSteps: 2000, Slower: 4, Probation: time.Minute}
}

// maxSlower is a factor that no trial reaches.
const maxSlower = 1e9

// maxTrialEnvs bounds the environments of a trial: they are made in addition to the running ones.
const maxTrialEnvs = 4096

// swapTable reads [swap].
func (k *checker) swapTable() {
	f := defaultSwap()
	n := k.root.at("swap")
	d := &tableDecoder{report: &k.Report, n: n, path: "swap"}
	d.decode(&f) // errors have been noted
	at, err := component.ParseBoundary(f.At)
	if child := n.at("at"); err != nil {
		k.Add("E010", child.val, table.DidYouMean(f.At, "%q", "boundaries", component.BoundaryNames[:]), "unknown boundary %q", f.At)
	}
	k.atLeast(n, "trial_envs", f.TrialEnvs, 0)
	if f.TrialEnvs > maxTrialEnvs {
		k.Add("E005", n.at("trial_envs").val, "", "`trial_envs` is %d, must be %d or less", f.TrialEnvs, maxTrialEnvs)
	}
	k.atLeast(n, "trial_steps", f.TrialSteps, 1)
	if f.Slower != 0 && !(f.Slower >= 1 && f.Slower <= maxSlower) {
		k.Add("E005", n.at("slower").val, "4 refuses what takes more than four times as long; 0 refuses nothing", "`slower` is %g, must be 1 or more, or 0", f.Slower)
	}
	k.graph.Swap = Swap{At: at, TrialEnvs: f.TrialEnvs, TrialSteps: f.TrialSteps, Slower: f.Slower, Probation: f.Probation, KeepState: f.KeepState}
}

// swapRule reads the key swap of a table.
func (k *checker) swapRule(of *node, value string) SwapRule {
	rule := SwapRule(value)
	n := of.at("swap")
	if _, ok := n.text(); ok && rule != SwapAlways && rule != SwapNever {
		k.Add("E010", n.val, table.DidYouMean(value, "%q", "rules", []string{string(SwapAlways), string(SwapNever)}), "unknown rule %q", value)
	}
	return rule
}

func (s *Swap) file() swapFile {
	return swapFile{At: s.At.String(), TrialEnvs: s.TrialEnvs, TrialSteps: s.TrialSteps, Slower: s.Slower, Probation: s.Probation, KeepState: s.KeepState}
}
