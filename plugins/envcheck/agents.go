package envcheck

import "fmt"

// noteIdle looks at the agents that do not act in the next step: their observations have been checked.
func (w *recorder) noteIdle(step int) {
	tr, row := w.driver.Acting()
	acts := tr.Acts(row)
	if acts == nil {
		return
	}
	for k, mask := range w.driver.Masks() {
		for i := range mask.Rows {
			for a := range mask.Elems {
				if acts[i] == 0 && tr.Schema.Written(tr.Schema.MaskOf(k).Column, i) && w.trace.idle == "" && mask.Bits(i, a) == 0 {
					w.trace.idle = fmt.Sprintf("%s does not act in step %d, and element %d of its mask is 0", w.who(i), step+1, a)
				}
			}
		}
	}
	for _, one := range acts {
		w.trace.acted += int(one)
	}
}

// idleAgents checks the rows of agents that do not act.
func (k *checker) idleAgents() (Verdict, string, error) {
	switch rows := k.o.Steps * k.base.envs; {
	case k.base.idle != "":
		return Failed, k.base.idle, nil
	case k.base.acted == 0:
		return OK, "all agents always act", nil
	default:
		return OK, fmt.Sprintf("agents act in %d of %d rows", k.base.acted, rows), nil
	}
}
