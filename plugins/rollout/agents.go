package rollout

import (
	"bytes"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// agents is the account of the agents of a split's environments. A reward in a row where the agent does not act counts with the
// row of its last action. The reward is added there and the episode ends there, so gamma applies once for each of the agent's
// decisions.
type agents struct {
	*trajectory.Agents
	held *decisions // nil if all agents always act
	// last is the row of the block where the agent last acted in its running episode; -1 if that was before the block, or
	// no episode runs.
	last []int32
	// before is the row of the agent's previous decision, -1 where the block has none.
	before []int32
	late   []lateValue
	cut    []traceCut
	// unfinished are the agents whose decisions have been taken out of the block at its end.
	unfinished []int32

	began []byte // 1 where the environment's episode begins in the newest row, by environment; see rows.noteBegins

	total, length *metric // of environments' episodes; lengths are the counts of totals
	// named are the metrics of the returns of agents that have names of their own, by their numbers; nil for the others, and where none has.
	named []*metric
}

// lateValue moves a bootstrap value from the row of the flag that asked for it to the row that it belongs to. Both are places in the block.
type lateValue struct{ from, to int }

// traceCut is a decision that bootstraps with the value of the next one. Both are places in the block. See cutTrace.
type traceCut struct{ at, next int }

func newAgents(s *trajectory.Schema, r *reports) (*agents, error) {
	if !s.Spec.HasAgents() {
		return nil, nil
	}
	held, err := newDecisions(s)
	return &agents{
		named:  namedReturns(s, r),
		Agents: trajectory.NewAgents(s), held: held, last: slices.Repeat([]int32{-1}, s.Rows()),
		before: slices.Repeat([]int32{-1}, s.Rows()), unfinished: make([]int32, 0, s.Rows()), began: make([]byte, s.Shape.Envs),
		total: r.metric("environment_return"), length: r.metric("environment_length"),
	}, err
}

// namedReturns makes the metrics of agents that have names of their own.
func namedReturns(s *trajectory.Schema, r *reports) []*metric {
	var list []*metric
	for _, name := range s.Spec.OwnNames() {
		var m *metric
		if name != "" {
			m = r.metric("return/" + name)
			m.byAgent = true
		}
		list = append(list, m)
	}
	return list
}

// open begins a block.
func (a *agents) open() {
	for i := range a.last {
		a.last[i], a.before[i] = -1, -1
	}
	a.late, a.cut, a.unfinished = a.late[:0], a.cut[:0], a.unfinished[:0]
	if a.held != nil {
		a.held.begin()
	}
}

// forget ends the episode of an agent, if one is running.
func (a *agents) forget(i int) {
	a.last[i], a.before[i] = -1, -1
	a.SetRunning(i, false)
	if a.held != nil {
		a.held.drop(i)
	}
}

// completeAgents is complete for environments with agents.
func (r *rows) completeAgents(t int, ended trajectory.Ended) {
	a := r.agents
	a.Step(r.tr, t)
	if r.anyGone {
		for i, gone := range r.gone {
			if gone != 0 {
				a.forget(i)
			}
		}
	}
	r.whole.forgetIdle(a)
	a.addUp(r.tr.Row(trajectory.Reward, t).Float32(), r.gone, r.c.schema.Agents)
	if a.held != nil {
		if t == 0 {
			a.held.place(r.tr)
		}
		r.foldRow(t)
		a.held.keepStates(r.tr, t)
	}
	r.markAges(t)
	r.bootstrap = ended&trajectory.AnyTruncated != 0
	r.gatherAgents(t, ended)
	if a.AnyEnded {
		r.reports.endAgents(t, a, r.c.schema.Agents)
	}
}

// addUp adds the rewards of a step to the episodes of environments, except lost ones.
func (a *agents) addUp(reward []float32, gone []byte, each int) {
	for first := 0; first < len(reward); first += each {
		if gone[first] != 0 {
			continue
		}
		sum := 0.0
		for _, x := range reward[first : first+each] {
			sum += float64(x)
		}
		a.total.running[first].add(sum, hostabi.TensorSum)
		for k, m := range a.named {
			if i := first + k; m != nil && (a.Running(i) || a.Ended[i] != 0) {
				m.running[i].add(float64(reward[i]), hostabi.TensorSum)
			}
		}
	}
}

// foldRow counts the rewards and ends in row t of agents that did not act in it.
func (r *rows) foldRow(t int) {
	a, valid := r.agents, r.tr.Row(trajectory.Valid, t).Data
	if !a.AnyEnded && bytes.IndexByte(valid, 0) < 0 { // everybody acts
		copy(a.before, a.last)
		for i := range a.last {
			a.last[i] = int32(t)
		}
		return
	}
	for i := range a.last {
		switch {
		case r.gone[i] != 0:
		case valid[i] != 0:
			a.before[i], a.last[i] = a.last[i], int32(t)
		case a.Running(i) || a.Ended[i] != 0:
			r.fold(t, i)
		}
		if a.Ended[i] != 0 {
			if r.whole == nil { // else no decision is carried
				r.cutTrace(i)
			}
			a.last[i], a.before[i] = -1, -1
		}
	}
}

// cutTrace is for an agent whose episode has ended. The decision before an unfinished one bootstraps with its value. It must do the same if
// the last decision ended the episode but would have been unfinished after as long a wait as the previous one's. Otherwise advantages would
// be summed only over decisions that ended episodes.
func (r *rows) cutTrace(i int) {
	a := r.agents
	last, before := int(a.last[i]), int(a.before[i])
	if last < 0 || before < 0 {
		return
	}
	wait := last - before
	if before == 0 && a.held.carried[i] != 0 {
		wait += int(a.held.waited[i])
	}
	if last+wait > r.c.config.Horizon {
		a.cut = append(a.cut, traceCut{before*r.n + i, last*r.n + i})
	}
}

// cutTraces writes the cuts of cutTrace into the block, after its episodes have been counted: as truncated rows with a bootstrap
// value.
func (a *agents) cutTraces(tr trajectory.Trajectory) {
	truncated, bootstrap, value := tr.Bytes(trajectory.Truncated), tr.Float32(trajectory.Bootstrap), tr.Float32(trajectory.Value)
	for _, c := range a.cut {
		truncated[c.at], bootstrap[c.at] = 1, value[c.next]
	}
}

// fold is foldRow for one agent. Where its last action is in an earlier block, its reward counts in the return alone.
func (r *rows) fold(t, i int) {
	a, at := r.agents, t*r.n+i
	reward := r.tr.Float32(trajectory.Reward)
	if a.last[i] < 0 {
		r.accounts[i].Return += float64(reward[at])
		return
	}
	to := int(a.last[i])*r.n + i
	reward[to] += reward[at]
	if shaped := r.tr.Float32(trajectory.ShapedReward); shaped != nil {
		shaped[to] += shaped[at]
	}
	if a.Ended[i] == 0 {
		return
	}
	for _, c := range []trajectory.Column{trajectory.Terminated, trajectory.Truncated} {
		flags := r.tr.Bytes(c)
		flags[to] = flags[at]
	}
	r.cuts[to] |= lateEnd
	r.anyCuts = true
	if r.tr.Bytes(trajectory.Truncated)[to] != 0 {
		a.late = append(a.late, lateValue{at, to})
	}
}

// invalidateAgent is invalidateRow for an agent of environments whose agents do not always act.
func (r *rows) invalidateAgent(t, i int, stepped bool) {
	a, runs := r.agents, r.agents.Running(i)
	if t < 0 || stepped && a.last[i] < 0 {
		a.forget(i)
		if runs {
			r.endUntold(&r.accounts[i])
		}
		return
	}
	acts := r.tr.Acts(t)[i] != 0
	if !stepped {
		at := t*r.n + i
		r.anyCuts = true
		r.cuts[at] = invalid
		r.tr.Bytes(trajectory.Valid)[at] = 0
		r.tr.ClearOutcomeOf(i, t)
		if acts {
			r.c.lostSteps.Inc()
		}
		if acts || runs && a.last[i] < 0 { // else the episode ends in the row of its last decision
			r.cuts[at] |= lostRow
		}
	}
	if runs && (stepped || !acts) {
		r.dropDecision(i, invalid|lostRow)
	}
	a.forget(i)
}

// dropDecision takes the last decision of an agent out of the block, because nobody knows its consequences. The
// decision before it uses its value as bootstrap. why is a mark for count.
func (r *rows) dropDecision(i int, why byte) {
	if r.agents.last[i] < 0 {
		return
	}
	at := int(r.agents.last[i])*r.n + i
	r.tr.Bytes(trajectory.Valid)[at] = 0
	r.cuts[at] |= why
	r.anyCuts = true
}

// endActing is endWhere after the first row of a block, where agents do not always act.
func (r *rows) endActing(ends []byte, t int, valued bool) {
	for i, end := range ends {
		if end != 0 && !r.endAgent(t, i, valued) {
			ends[i] = 0
		}
	}
}

// endAgent is endActing for one agent, and reports whether its episode was running.
func (r *rows) endAgent(t, i int, valued bool) (ran bool) {
	a := r.agents
	defer a.forget(i)
	switch {
	case !a.Running(i):
		return false
	case a.last[i] < 0:
		r.accounts[i] = account{}
	case r.tr.Acts(t)[i] == 0:
		r.dropDecision(i, invalid|endRow)
	default:
		r.endDecision(t, i, valued)
	}
	return true
}

// endDecision truncates the episode of an agent that was to act in row t after its last action.
func (r *rows) endDecision(t, i int, valued bool) {
	before, to := (t-1)*r.n+i, int(r.agents.last[i])*r.n+i
	truncated := r.tr.Bytes(trajectory.Truncated)
	truncated[before], truncated[to] = 1, 1
	r.tr.KeepFinal(i, t)
	r.cuts[to] |= endRow
	r.anyCuts = true
	if valued {
		r.tr.Float32(trajectory.Bootstrap)[to] = r.tr.Float32(trajectory.Value)[t*r.n+i]
		return
	}
	r.bootstrap = true
	r.agents.late = append(r.agents.late, lateValue{before, to})
}

// moveLate puts bootstrap values into the rows that they belong to, when all have been written.
func (a *agents) moveLate(tr trajectory.Trajectory) {
	values := tr.Float32(trajectory.Bootstrap)
	for _, v := range a.late {
		values[v.to] = values[v.from]
	}
}

// holdUnfinished takes open decisions out of the block before it is counted. The consequences of a decision are known when its agent
// acts again or its episode ends. The next block has them instead. Decisions from an earlier block have been counted in their episodes'
// lengths there.
func (r *rows) holdUnfinished() {
	a, steps := r.agents, r.c.config.Horizon
	if a.held == nil {
		return
	}
	r.forgetCarried()
	acts := r.tr.Acts(steps)
	for i, last := range a.last {
		if last >= 0 && acts[i] == 0 {
			a.unfinished = append(a.unfinished, int32(i))
			a.held.take(r.tr, int(last), i, steps)
		}
	}
}

// countUnfinished counts open decisions in the lengths of their episodes, after the rows before them. Their rewards count when they are
// complete: in the next block if it has the decision, else here.
func (r *rows) countUnfinished() {
	a, reward := r.agents, r.tr.Float32(trajectory.Reward)
	for _, i := range a.unfinished {
		r.accounts[i].Length++
		if a.held.open[i] == 0 {
			r.accounts[i].Return += float64(reward[int(a.last[i])*r.n+int(i)])
		}
	}
}

// forgetCarried takes decisions of an earlier block out of the lengths of their episodes, because they are counted again.
func (r *rows) forgetCarried() {
	a := r.agents
	if a == nil || a.held == nil || !a.held.anyCarried {
		return
	}
	for i, carried := range a.held.carried {
		if carried != 0 && r.accounts[i].Length > 0 {
			r.accounts[i].Length--
		}
	}
}

// gatherAgents is gather for environments with agents. Infos of an environment count with its episode, infos of an agent
// with the agent's.
func (r *rows) gatherAgents(t int, ended trajectory.Ended) {
	each := r.c.schema.Agents
	for k := range r.reports.figures {
		f := &r.reports.figures[k]
		if f.last && ended == 0 {
			continue
		}
		if f.to == nil {
			f.to = r.reports.metric(f.Name)
			f.to.byAgent = f.Agents
		}
		info := r.tr.Row(f.Column, t)
		values, at, stride := info.Float32(), f.Elem*info.StrideElem/4, info.StrideRow/4
		for i := range r.n {
			agent, to := i%each-f.First, i
			runs, over := r.agents.Running(i) || r.agents.Ended[i] != 0, r.agents.Ended[i] != 0
			if !f.Agents {
				runs, over, to = agent == 0 && r.gone[i] == 0, r.agents.EnvEnded[i/each] != 0, i-f.First
			}
			if runs && agent >= 0 && agent < f.Count && (over || !f.last) && (!f.AtBegin || r.begins(i, f.Agents)) {
				f.add(to, values[at+i*stride])
			}
		}
	}
}

// noteEnvs notes the environments whose episodes begin in a row: some agents begin, and none ran before.
func (a *agents) noteEnvs(begins []byte, each int) {
	for env := range a.began {
		some, ran := byte(0), false
		for i := env * each; i < (env+1)*each; i++ {
			some |= begins[i]
			ran = ran || a.Running(i)
		}
		a.began[env] = flagOf(some != 0 && !ran)
	}
}

// endAgents is end for environments with agents. An environment's reports end with the last of its agents' episodes in row t.
func (r *reports) endAgents(t int, a *agents, each int) {
	last := -1
	for i, over := range a.Ended {
		at := t*r.n + i
		if over != 0 {
			last = at
			r.tell(i, at, true)
		}
		if i%each == each-1 && a.EnvEnded[i/each] != 0 {
			first := i + 1 - each
			a.length.running[first] = tally{Value: float64(a.total.running[first].Count), Count: 1}
			r.tell(first, last, false)
		}
	}
}

// tell ends the reports of an episode of an agent or of an environment.
func (r *reports) tell(i, at int, byAgent bool) {
	for _, m := range r.metrics {
		if one := &m.running[i]; m.byAgent == byAgent && one.Count > 0 {
			r.ended = append(r.ended, told{m.to, one.number(), at})
			*one = tally{}
		}
	}
}
