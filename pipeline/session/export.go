package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/export"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// CodeExport is the code of a policy that cannot be exported; rlhost explain has its page.
const CodeExport = "E049"

// Exported is a policy as a file, with its largest difference from the host on so many observations that the policy met in
// its environment; see export.Compare.
type Exported struct {
	File     []byte
	Version  uint64 // of the policy
	EnvSteps uint64 // that it has learned from
	Rows     int
	Largest  float64
}

// Export returns a checkpoint's policy in a format. name is the policy's, empty for the leading one.
func Export(ctx context.Context, run *runs.Run, c *runs.Checkpoint, parts *graph.Parts, name string, f export.Format) (x Exported, err error) {
	e, err := newExporter(ctx, run, parts, name, f)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, e.plugin.Close()) }()
	return e.encode(c, f)
}

// exporter makes files of a run's policy.
type exporter struct {
	run     *runs.Run
	parts   *graph.Parts
	graph   *graph.Graph
	policy  *graph.Policy
	learner string // of the policy
	player  players.Player
	plugin  env.Plugin    // the caller closes it
	asked   export.Format // that errors name: HTML, or the format of the files
}

func newExporter(ctx context.Context, run *runs.Run, parts *graph.Parts, name string, f export.Format) (*exporter, error) {
	e := &exporter{run: run, parts: parts, asked: f}
	var err error
	if e.graph, err = ownPipeline(run, nil, parts); err != nil {
		return nil, err
	}
	if e.policy, e.learner, err = learned(e.graph, name); err != nil {
		return nil, err
	}
	if e.player, e.plugin, err = define(ctx, parts, e.graph, e.policy); err != nil {
		return nil, err
	}
	return e, nil
}

// encode returns the policy of a checkpoint in a format.
func (e *exporter) encode(c *runs.Checkpoint, f export.Format) (x Exported, err error) {
	p, err := e.described(c, &x)
	if err != nil {
		return x, err
	}
	if x.File, err = export.Encode(f, p); err != nil {
		return x, exportError(e.policy.Name, e.asked, err)
	}
	if p.Network.External() != nil { // only its program computes it
		return x, nil
	}
	samples, err := observe(e.plugin, e.player.Backend, p, e.player.Group)
	if err != nil {
		return x, err
	}
	x.Rows = samples.Rows
	alone := func(module []byte) (export.Machine, error) {
		if e.parts.Alone == nil {
			return nil, errors.New("this program runs no modules")
		}
		return e.parts.Alone(module)
	}
	if x.Largest, err = export.Compare(f, x.File, samples, alone); err != nil {
		return x, exportError(e.policy.Name, e.asked, err)
	}
	return x, nil
}

// described returns the policy of a checkpoint with what is said about it, and its progress in x.
func (e *exporter) described(c *runs.Checkpoint, x *Exported) (p *export.Policy, err error) {
	state := c.Components[e.learner]
	if x.Version, x.EnvSteps, err = progressOf(e.parts, state); err != nil {
		return nil, err
	}
	of := &e.graph.Env(e.policy.Env).Table
	use := of.Use
	if leading, _, err := learned(e.graph, ""); err == nil && leading.Env == e.policy.Env {
		use = e.run.Info().Env // as the file that the run was started with has it
	}
	p = &export.Policy{Valueless: e.asked == HTML, About: map[string]string{
		"run": e.run.ID(), "policy": e.policy.Name, "policy_version": fmt.Sprint(x.Version), "env_steps": fmt.Sprint(x.EnvSteps), "env": use,
	}}
	if len(of.Wrap) > 0 { // the policy sees and acts through them
		p.About["wrap"] = env.WithoutWrapPaths(env.WrapText(of.Wrap))
	}
	if p.Network, p.Weights, err = players.WeightsOf(e.parts, state); err != nil {
		return nil, err
	}
	spec := e.plugin.Spec()
	group := spec.OfGroup(e.player.Group)
	p.Masked = make([]bool, len(p.Network.Policy))
	for _, mask := range group.All(hostabi.RoleActionMask) {
		p.Masked[mask.Pair] = true
	}
	if p.Network.External() == nil {
		return p, nil
	}
	p.About[export.AboutDescribe] = base64.StdEncoding.EncodeToString(group.Describe())
	args, err := json.Marshal(e.policy.Plain()["args"])
	p.About[export.AboutArgs] = string(args)
	return p, err
}

// exportError says why a policy has no file of a format.
func exportError(name string, f export.Format, err error) error {
	help := "nothing has been written: take another format than " + string(f)
	if errors.Is(err, export.ErrUndescribed) {
		help += `; or say what the network is (describe), and write acts = "host" into [policy.` + name + `]: such a policy has every format`
	}
	if errors.Is(err, export.ErrDiffers) {
		help += "; it is a mistake of this program, so keep the checkpoint and report it"
	}
	return BuildError(&table.Error{Code: CodeExport, Reason: fmt.Sprintf("policy %q cannot be exported as %s: %v", name, f, err), Help: help, Err: err})
}

// observe plays a group of agents by a policy, and the others at random, and returns the group's observations with the policy's answers.
func observe(plugin env.Plugin, b policy.Backend, p *export.Policy, group int) (s *export.Samples, err error) {
	const envs = 50
	spec := plugin.Spec()
	n := envs
	if spec.MaxEnvs > 0 {
		n = min(n, spec.MaxEnvs)
	}
	driver, err := env.NewDriver(plugin, env.DriverOptions{Memory: p.Network.Memory(),
		Options: env.Options{Name: "export", Envs: n, Seed: env.EvaluationStream.Seed(0)}, SoA: spec.Caps&hostabi.CapPreferSoA != 0,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	actor, err := policy.NewActor(b, &p.Network, n*spec.Agents())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, actor.Close()) }()
	if err := actor.Load(p.Weights); err != nil {
		return nil, err
	}
	return met(driver, actor, p, n, group)
}

// met steps n environments with sampled actions until it has enough observations.
func met(driver *env.Driver, actor policy.Actor, p *export.Policy, n, group int) (*export.Samples, error) {
	view := driver.Schema().OfGroup(group)
	bound, err := p.Network.Bind(view)
	if err != nil {
		return nil, err
	}
	agents, seeds := trajectory.NewAgents(driver.Schema()), make([]uint64, n)
	for i := range seeds {
		seeds[i] = env.Seed(env.EvaluationStream.Seed(0), i)
	}
	if err := driver.Reset(nil, seeds); err != nil {
		return nil, err
	}
	var picked policy.Picked
	var own []uint32
	for row := range view.Rows() {
		if driver.Schema().GroupOf(row) == group {
			own = append(own, uint32(row))
		}
	}
	s := export.NewSamples(&p.Network, p.Weights.ObsMean)
	for step, rows := uint64(0), p.Rows(); s.Rows < rows; step++ {
		driver.Draw(func(row int) uint64 { return env.Seed(step, row) })
		tr, row := driver.Acting()
		tr.Schema = view
		all := policy.Request{Obs: bound.Row(nil, tr, row), Age: bound.Ages(tr, row), Mask: tr.Masks(nil, row), Action: tr.Rows(nil, trajectory.Action, row),
			Raw: tr.RawActions(nil, row), LogProb: driver.LogProb(), Value: driver.Value(), Greedy: true, Step: step,
			State: bound.State(tr, row), StateOut: bound.State(tr, row+1)}
		r := picked.Pick(&all, own)
		if err := actor.Act([]policy.Request{r}); err != nil {
			return nil, err
		}
		s.Add(&r)
		r.Greedy = false
		if err := actor.Act([]policy.Request{r}); err != nil {
			return nil, err
		}
		picked.Return()
		tr.KeepState(row)
		if _, err := driver.Step(); err != nil {
			return nil, err
		}
		if agents.Step(driver.Stepped()); slices.Contains(agents.EnvEnded, 1) {
			if err := driver.Reset(agents.EnvEnded, seeds); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}
