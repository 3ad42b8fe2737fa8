package graph

import "fmt"

// annealKey is the key of a component whose rate falls to 0 over that many env steps.
const annealKey = "anneal_env_steps"

// schedule writes the env steps of the run into the schedules of a preset's components. Where the file is to change a run
// that goes on, they stay what they are there: no rate at an env step changes with the stop rule.
func (c *checker) schedule(root, base *node) {
	components := base.at("component")
	if components == nil {
		return
	}
	for name, table := range components.table {
		for key, n := range table.table {
			if s, _ := n.text(); s == runEnvSteps {
				resolve(n, runEnvSteps, c.envSteps(root, n, c.running.Component(name).key(key)))
			}
		}
	}
}

// envSteps returns what n of a preset stands for: the running value, else the stop rule's, else 0.
func (c *checker) envSteps(root, n, running *node) *node {
	if running != nil {
		return &node{val: n.val, value: running.value}
	}
	if stop := lookup(root, "run.stop.env_steps"); stop != nil {
		if v, ok := stop.value.(int64); ok && v > 0 {
			return stop
		}
	}
	return &node{val: n.val, value: int64(0)}
}

// outlasted warns of schedules that end before the run does.
func (c *checker) outlasted() {
	stop := c.graph.Run.Stop.EnvSteps
	for i := range c.graph.Components {
		x := &c.graph.Components[i]
		n := x.key(annealKey)
		if n == nil {
			continue
		}
		steps, ok := n.value.(int64)
		if !ok || steps <= 0 || stop <= uint64(steps) {
			continue
		}
		at := n.val
		if given := lookup(c.root, "run.stop.env_steps"); at.order() >= firstPreset && given != nil {
			at = given.val
		}
		key := "component." + x.Name + "." + annealKey
		c.Add("W103", at, fmt.Sprintf("set %s = %d, or 0 for a rate that stays", key, stop),
			"the learning rate is 0 from %s = %d on, and the run goes on to run.stop.env_steps = %d", key, steps, stop)
	}
}
