package fit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// checkMapped checks that the blocks that each component's environments step into can be mapped. The blocks of a split are mapped into
// the memory of one instance and do not count against its limit.
func (l *Loaded) checkMapped(c *graph.Report) {
	for _, x := range l.parts {
		if !x.makesBlocks() {
			continue
		}
		at := l.graph.Env(x.Env).UseAt
		schema, err := trajectory.NewSchema(x.spec, x.shape())
		if err != nil {
			c.Add("E042", at, fmt.Sprintf("lower envs or horizon of %q, or raise its splits", x.Name), "env %q: %v", x.Env, err)
			continue
		}
		blocks := 1
		if !l.graph.Synchronous {
			blocks = x.Flow.Blocks / x.Flow.Splits
		}
		var short *env.MemoryError
		if errors.As(env.CheckMemory(x.plugin, blocks, schema), &short) {
			help := short.Help(fmt.Sprintf("lower envs, horizon or blocks of %q, or raise its splits", x.Name))
			c.Add("E042", at, help, "env %q: %v", x.Env, short)
		}
	}
}

// checkBatches checks that no batch has more environments than the description allows.
func (l *Loaded) checkBatches(c *graph.Report) {
	for _, x := range l.parts {
		if !x.makesBlocks() {
			continue
		}
		e, many := l.graph.Env(x.Env), (*table.Error)(nil)
		o := env.Options{Envs: x.shape().Envs, Autoreset: x.spec.PickAutoreset()}
		if errors.As(o.Check(&x.spec, e.Table.Workers), &many) {
			c.Add(many.Code, e.UseAt, fmt.Sprintf("lower envs of %q or raise its splits, or raise max_envs of the description", x.Name),
				"env %q: each split of %q has %s", x.Env, x.Name, many.Reason)
		}
	}
}

// checkColumns checks that blocks of trajectories have the columns that the components to which they come say they look at.
func (l *Loaded) checkColumns(c *graph.Report) {
	for i := range l.graph.Wires {
		w := &l.graph.Wires[i]
		to, payload := l.graph.Component(w.To), component.PayloadOf(w.Payload)
		if len(to.Looks) == 0 || !payload.Steps && !payload.OnLoan {
			continue
		}
		slot, _ := to.Manifest.Slot(w.Slot)
		for _, maker := range l.makers(w) {
			for _, look := range to.Looks {
				if look.Slot != slot {
					continue
				}
				if reason, help := lacks(maker.schema, &look); reason != "" {
					c.Add("E083", w.SlotAt, help, "%s looks at the column %q: in blocks of %q %s", component.Qualified(w.To, w.Slot), look.Name, maker.Name, reason)
				}
			}
		}
	}
}

// makers returns the components that make the blocks of a wire's messages, where it is known how those lie: the sender, or those whose
// blocks it passes on.
func (l *Loaded) makers(w *graph.Wire) (list []*part) {
	seen := map[string]bool{}
	for queue := []string{w.From}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		if x := l.part(name); x.makesBlocks() {
			if x.schema != nil {
				list = append(list, x)
			}
			continue
		}
		for i := range l.graph.Wires {
			if v := &l.graph.Wires[i]; v.To == name && v.Payload == w.Payload {
				queue = append(queue, v.From)
			}
		}
	}
	return list
}

// lacks returns what is wrong with a column of a schema for who looks at it; empty if nothing is.
func lacks(schema *trajectory.Schema, look *hostabi.ManifestColumn) (reason, help string) {
	columns := schema.Columns()
	i := slices.IndexFunc(columns, func(l trajectory.Layout) bool { return l.Column.String() == look.Name })
	switch {
	case i < 0 && look.Flags&hostabi.ColumnOptional != 0:
		return "", ""
	case i < 0:
		names := make([]string, len(columns))
		for k, l := range columns {
			names[k] = l.Column.String()
		}
		return "there is none", table.DidYouMean(look.Name, "%s", "columns", names)
	case look.DType != 0 && look.DType != columns[i].DType:
		return fmt.Sprintf("it is %v, not %v", columns[i].DType, look.DType), "correct the type in the component"
	}
	return "", ""
}

// checkEnds warns of environments whose episodes have no limit from outside.
func (l *Loaded) checkEnds(c *graph.Report) {
	for _, x := range l.parts {
		if x.runs() && x.spec.EpisodeLimit <= 0 && !x.Whole {
			c.Add("W104", l.graph.Env(x.Env).UseAt, fmt.Sprintf("add wrap = [{ time_limit = 1000 }] to [env.%s], unless every episode ends by itself", x.Env),
				"env %q has no limit to its episodes, and component %q runs it", x.Env, x.Name)
		}
	}
}

// checkWhole checks that whole episodes fit the blocks of components that make blocks of them.
func (l *Loaded) checkWhole(c *graph.Report) {
	for _, x := range l.parts {
		if !x.Whole || !x.makesBlocks() {
			continue
		}
		horizon, limit := x.shape().Steps, x.spec.EpisodeLimit
		e := component.ConfigError{Code: "E099", Key: "whole_episodes"}
		switch {
		case limit <= 0:
			e.Reason = fmt.Sprintf("wants blocks of whole episodes, and env %q has no limit to its episodes", x.Env)
			e.Help = fmt.Sprintf("add wrap = [{ time_limit = %d }] to [env.%s]", horizon, x.Env)
		case limit > horizon:
			e.Reason = fmt.Sprintf("wants blocks of whole episodes: the blocks have %d env steps, and episodes of env %q up to %d", horizon, x.Env, limit)
			e.Help = fmt.Sprintf("use horizon = %d in [component.%s], or add wrap = [{ time_limit = %d }] to [env.%s]", x.holding(limit), x.Name, horizon, x.Env)
		default:
			continue
		}
		x.Report(c, &e)
	}
}

// holding returns the shortest horizon of so many env steps or more that is whole chunks of the policies whose states the blocks keep.
func (x *part) holding(steps int) int {
	if x.schema == nil || x.schema.Shape.State == 0 {
		return steps
	}
	chunk := x.schema.StoredEvery()
	return (steps + chunk - 1) / chunk * chunk
}

// checkVideos warns of videos that no environment has pictures for.
func (l *Loaded) checkVideos(c *graph.Report) {
	if l.graph.Run.Evaluation.VideoEveryEnvSteps == 0 {
		return
	}
	for i := range l.graph.Envs {
		if runs := l.plugins[l.graph.Envs[i].Name]; runs == nil || runs.Spec().Render.Modes&(hostabi.RenderRGB|hostabi.RenderRGBA) != 0 {
			return
		}
	}
	if len(l.graph.Envs) > 0 {
		e := &l.graph.Envs[0]
		c.Add("W125", e.Place("use"), "give the environment pictures, as rlhost explain E156 says, or leave the key out",
			"env %q draws no pictures in colour: `run.evaluation.video_every_env_steps` makes no videos", e.Name)
	}
}

// checkLimits warns of time limits that never act, because episodes end before by the environment's own limit or by another one within.
func (l *Loaded) checkLimits(c *graph.Report) {
	for i := range l.graph.Envs {
		e := &l.graph.Envs[i]
		runs := l.plugins[e.Name]
		if runs == nil {
			continue
		}
		own := runs.Spec().EpisodeLimit // outside all wrappers: wrappers that repeat actions have divided it
		for k, w := range slices.Backward(e.Table.Wrap) {
			for _, key := range []string{"action_repeat", "frame_skip"} {
				if steps, ok := w[key].(int64); ok {
					own *= int(steps)
				}
			}
			if limit, ok := w["time_limit"].(int64); ok && own > 0 && limit > int64(own) {
				c.Add("W123", e.Place(fmt.Sprintf("wrap[%d].time_limit", k)), "leave it out, or raise the limit where it is: in args of the environment, or in its description",
					"wrap[%d] of env %q has time_limit = %d, and its episodes end after %d env steps at most: the longer limit has no effect", k, e.Name, limit, own)
			}
		}
	}
}
