package trajectory

import "fmt"

// Outside looks for an action in a row that lies outside its space, of one environment of the block, or of any if env is -1. It returns
// whose it is, and says which it is and what it may be; what is "" if there is none. Agents that do not act are left out.
func (t Trajectory) Outside(env, row int) (of int, what string) {
	first, last, acts := 0, t.Schema.Rows(), t.Acts(row)
	if env >= 0 {
		first, last = env*t.Schema.Agents, (env+1)*t.Schema.Agents
	}
	for i := first; i < last; i++ {
		for k := range t.Schema.actions {
			if acts != nil && acts[i] == 0 || !t.Schema.holds(&t.Schema.columns[t.Schema.actions[k].action], i) {
				continue
			}
			if what := t.outside(k, i, row); what != "" {
				return i / t.Schema.Agents, t.Schema.whose(i) + what
			}
		}
	}
	return -1, ""
}

// whose names the agent of a row, where an environment has several.
func (s *Schema) whose(i int) string {
	if s.Agents == 1 {
		return ""
	}
	return s.Spec.Agent(i%s.Agents) + ": "
}

// outside says which element of an environment's action k, as the environment reads it, is outside its space; "" if none is.
func (t Trajectory) outside(k, i, row int) string {
	c := &t.Schema.actions[k]
	read := t.Schema.find(Executed.At(k))
	if read == nil {
		read = &t.Schema.columns[c.action]
	}
	action := t.row(read, row)
	for elem := range action.Elems {
		low, high := c.tensor.Bounds(elem)
		least, most := float64(low), float64(high)
		if c.tensor.Discrete() {
			least, most = float64(c.tensor.Start), float64(c.tensor.Start)+float64(c.tensor.Count(elem)-1)
		}
		value := action.Value(i, elem)
		if value >= least && value <= most {
			continue
		}
		name := "action"
		if c.tensor.Path != "" {
			name += " " + c.tensor.Path
		}
		if action.Elems > 1 {
			name += fmt.Sprintf(", element %d,", elem)
		}
		return fmt.Sprintf("%s is %v, want %v to %v", name, value, least, most)
	}
	return ""
}
