package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// flowChecker checks a graph as a whole: do messages keep flowing?
type flowChecker struct{ check *checker }

// flow rejects graphs that would stall.
func (k *flowChecker) flow() {
	k.fill()
	k.blockingCycles()
	for i := range k.check.graph.Components {
		if x := &k.check.graph.Components[i]; x.Flow.DatasetRows > 0 {
			k.starving(x)
		}
	}
	for i := range k.check.graph.Wires {
		k.shallow(&k.check.graph.Wires[i])
	}
	for i := range k.check.graph.Components {
		k.unanswered(&k.check.graph.Components[i])
	}
}

// codeUnanswered is the code of requests without an answer: the sender would wait for ever.
const codeUnanswered = "E088"

// unanswered rejects components whose requests get no answer: a component that runs environments and whose signal leads nowhere, any
// whose request reaches a receiver that must answer and is not wired back, and any whose request reaches only receivers that are not.
func (k *flowChecker) unanswered(x *Component) {
	for _, port := range x.Manifest.Signals {
		answer := component.PayloadOf(port.Payload).AnsweredBy
		if answer == "" {
			continue
		}
		signal, back := component.Qualified(x.Name, port.Name), k.slotFor(x, answer)
		var asked, silent []*Wire
		for i := range k.check.graph.Wires {
			w := &k.check.graph.Wires[i]
			if w.From != x.Name || w.Signal != port.Name {
				continue
			}
			asked = append(asked, w)
			if !k.answers(w.To, x.Name, answer) {
				silent = append(silent, w)
			}
		}
		if len(silent) < len(asked) { // others only watch
			silent = slices.DeleteFunc(silent, func(w *Wire) bool { return !k.mustAnswer(w) })
		}
		switch {
		case len(asked) == 0 && x.Flow.Envs > 0:
			k.check.Add(codeUnanswered, x.table.key, fmt.Sprintf("wire %q to a component that answers, and its %s back to %q; or do not ask", signal, answer, back),
				"nobody answers %q: it is not wired, and %q would wait for ever", signal, x.Name)
		case len(silent) > 0:
			k.check.Add(codeUnanswered, silent[0].SlotAt, fmt.Sprintf(`wire the signal of %q with %s to %q, with mode = "reply"`, silent[0].To, answer, back),
				"%q asks %q, and gets no answer: no wire leads back to %q, and it would wait for ever", signal, silent[0].To, back)
		}
	}
}

// mustAnswer reports whether the receiver of a wire's requests has to answer them even if another one does.
func (k *flowChecker) mustAnswer(w *Wire) bool {
	return w.Mode == bus.Queue || w.Payload == component.PayloadRequest && k.check.graph.Component(w.To).Policy != ""
}

// answers reports whether a component sends another one a payload.
func (k *flowChecker) answers(from, to, payload string) bool {
	return slices.ContainsFunc(k.check.graph.Wires, func(w Wire) bool { return w.From == from && w.To == to && w.Payload == payload })
}

// slotFor names the slot of a component for a payload.
func (k *flowChecker) slotFor(x *Component, payload string) string {
	for _, port := range x.Manifest.Slots {
		if port.Payload == payload {
			return component.Qualified(x.Name, port.Name)
		}
	}
	return x.Name
}

// blocks is how many blocks of one instance are in circulation.
func (k *flowChecker) blocks(x *Component) int {
	if k.check.graph.Synchronous {
		return x.Flow.Splits
	}
	return x.Flow.Blocks
}

// datasetRowsKey is the key of a component that says how many rows its datasets have.
const datasetRowsKey = "dataset_rows"

// fill sets the rows of a synchronous run's datasets to the rows that arrive, where the file does not say how many.
func (k *flowChecker) fill() {
	if !k.check.graph.Synchronous {
		return
	}
	for i := range k.check.graph.Components {
		x := &k.check.graph.Components[i]
		producers := k.producers(x)
		n, rows := x.table.at(datasetRowsKey), k.circulating(producers, x)
		if x.Flow.DatasetRows == 0 || rows == 0 || rows == x.Flow.DatasetRows || k.writtenOut(n) {
			continue
		}
		at := k.culprit(datasetRowsKey, append([]*Component{x}, producers...)...)
		x.table.put(datasetRowsKey, &node{kind: scalarNode, key: at, val: at, value: int64(rows)})
		k.check.configure(x, x.made, "component."+x.Name)
	}
}

// writtenOut reports whether a value is the user's own word.
func (k *flowChecker) writtenOut(n *node) bool {
	if n == nil {
		return false
	}
	order := n.val.order()
	return order < firstPreset && (order == setOrder || !k.check.expanded)
}

// circulating is how many rows the blocks in circulation hold for one component, or for one instance of it that is paired with its producers'.
func (k *flowChecker) circulating(producers []*Component, x *Component) int {
	rows := 0
	for _, from := range producers {
		instances := from.Count
		if k.paired(from, x) {
			instances = 1
		}
		rows += instances * k.blocks(from) * from.Flow.BlockRows
	}
	return rows
}

// starving checks that the blocks in circulation can make the datasets that a component gathers.
func (k *flowChecker) starving(x *Component) {
	producers := k.producers(x)
	want, rows := x.Flow.DatasetRows, k.circulating(producers, x)
	if rows == 0 {
		return
	}
	at := k.culprit(datasetRowsKey, append([]*Component{x}, producers...)...)
	use := func(rows int) string { return fmt.Sprintf("use dataset_rows = %d in [component.%s]", rows, x.Name) }
	if k.check.graph.Synchronous {
		if rows != want {
			k.check.Add("E060", at, use(rows), "in sync mode a dataset is one block of every split, %d rows together, not %d", rows, want)
		}
		return
	}
	largest, whole, cut := 0, 1, (*Component)(nil)
	for _, from := range producers {
		block := from.Flow.BlockRows
		largest, whole = max(largest, block), leastCommonMultiple(whole, block)
		if cut == nil && want%block != 0 {
			cut = from
		}
	}
	// Each of several gatherers may hold nearly a dataset while none of them has a whole one.
	sharing := x.Count
	if !slices.ContainsFunc(producers, func(from *Component) bool { return !k.paired(from, x) }) {
		sharing = 1
	}
	most := (rows + (sharing-1)*largest) / sharing / whole * whole
	help := use(min((want+whole-1)/whole*whole, most))
	if most == 0 {
		help = "let more blocks circulate: `blocks` of the rollouts"
	}
	if cut == nil {
		if want > most {
			k.check.Add("E060", at, help, "datasets of %d rows can never be full: %d rows are in circulation", want, rows)
		}
		return
	}
	for _, from := range producers {
		k.cutting(x, from, at, help)
	}
	// And what is left of a block, of which all but one environment has been learned from.
	steps := stepsOf(&cut.Flow)
	if kept := largest - steps; want > (rows+(x.Count-1)*steps)/x.Count-kept {
		k.check.Add("E060", at, help, "datasets of %d rows are not always full: %d rows are in circulation, and a block of which a part waits may keep %d that have been learned from",
			want, rows, kept)
	}
}

// codeParts is the code of datasets that cannot be cut out of blocks.
const codeParts = "E090"

// cutting checks that datasets which are no whole number of a component's blocks can be cut out of them: along environments, which keep
// all their time steps, and into no more parts than the marks of a block tell apart.
func (k *flowChecker) cutting(x, from *Component, at Span, help string) {
	want, block, steps := x.Flow.DatasetRows, from.Flow.BlockRows, stepsOf(&from.Flow)
	if want%block == 0 {
		return
	}
	if want%steps != 0 {
		k.check.Add(codeParts, at, fmt.Sprintf("%s, or another multiple of %d", help, steps),
			"a dataset of %d rows has no whole number of %s's environments: each has %d rows in a block, of %d", want, from.Name, steps, block)
		return
	}
	policies := max(1, len(strings.Fields(from.Flow.ShapePolicies())))
	if parts := 1 + (block-steps+want-1)/want; parts > trajectory.MaxParts(policies) {
		k.check.Add(codeParts, at, help, "datasets of %d rows cut %s's blocks of %d rows into up to %d parts: a block has marks for %d",
			want, from.Name, block, parts, trajectory.MaxParts(policies))
	}
}

// stepsOf returns the time steps of a component's blocks: the rows of one environment.
func stepsOf(f *component.Flow) int {
	if f.Envs == 0 || f.BlockRows*f.Splits%f.Envs != 0 {
		return f.BlockRows
	}
	return f.BlockRows * f.Splits / f.Envs
}

// leastCommonMultiple of numbers of rows, which are more than 0. Any result beyond the largest dataset is as good as another.
func leastCommonMultiple(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	if a/x > math.MaxInt32/b {
		return math.MaxInt32
	}
	return a / x * b
}

// culprit returns the position to show for inconsistent numbers of several components: a key of the first
// one, unless it comes from a preset and the user wrote other keys of theirs.
func (k *flowChecker) culprit(key string, list ...*Component) Span {
	at := list[0].table.key
	if n := list[0].table.at(key); n != nil {
		at = n.val
	}
	if at.order() < firstPreset {
		return at
	}
	for _, x := range list {
		for _, name := range x.table.names {
			n := x.table.table[name]
			if n.key.order() < firstPreset && n.kind == scalarNode && !slices.Contains([]string{"kind", "loop"}, name) {
				return n.val
			}
		}
	}
	return at
}

// producers are the components that make blocks and are wired to x, each once.
func (k *flowChecker) producers(x *Component) []*Component {
	var list []*Component
	for _, w := range k.check.graph.Wires {
		from := k.check.graph.Component(w.From)
		if w.To == x.Name && from.Flow.BlockRows > 0 && !slices.Contains(list, from) {
			list = append(list, from)
		}
	}
	return list
}

// paired reports whether each instance of a component gets the blocks of one instance of another alone.
func (k *flowChecker) paired(from, to *Component) bool {
	return slices.ContainsFunc(k.check.graph.Wires, func(w Wire) bool { return w.Paired && w.From == from.Name && w.To == to.Name })
}

// shallow checks that a wire has room for all blocks that can be on it, so that senders only ever wait for
// blocks.
func (k *flowChecker) shallow(w *Wire) {
	from, to := k.check.graph.Component(w.From), k.check.graph.Component(w.To)
	if from.Flow.BlockRows == 0 || to.Flow.DatasetRows == 0 || w.OnFull != bus.Block && w.OnFull != bus.Fail {
		return
	}
	blocks := k.blocks(from)
	if w.Depth >= blocks {
		return
	}
	at := w.depthAt
	if at.order() >= firstPreset {
		at = k.culprit("blocks", from)
	}
	k.check.Add("E060", at, fmt.Sprintf("use depth = %d or more", blocks),
		"depth = %d on the wire of %s.%s, but there are %d blocks in circulation", w.Depth, w.From, w.Signal, blocks)
}

// blockingCycles finds cycles of wires that all block: once each is full, none progresses. Replies are left out,
// because the requester also limits the number of answers.
func (k *flowChecker) blockingCycles() {
	edges := map[string][]*Wire{}
	for i := range k.check.graph.Wires {
		if w := &k.check.graph.Wires[i]; w.OnFull == bus.Block && w.Mode != bus.Reply {
			edges[w.From] = append(edges[w.From], w)
		}
	}
	state := map[string]int{} // 1 on the path, 2 left for good
	var path []string
	var visit func(x string)
	visit = func(x string) {
		state[x] = 1
		path = append(path, x)
		for _, w := range edges[x] {
			switch state[w.To] {
			case 0:
				visit(w.To)
			case 1:
				cycle := append(slices.Clone(path[slices.Index(path, w.To):]), w.To)
				at, help := w.SlotAt, `let one of them give way: on_full = "drop_oldest" or "coalesce"; or on_full = "fail", where never more messages are under way than it has depth`
				if answer := k.answerOf(edges, cycle); answer != nil {
					at, help = answer.SlotAt, `an answer goes back to the instance that has asked: mode = "reply" on the wire of `+component.Qualified(answer.From, answer.Signal)
				}
				k.check.Add("E060", at, help,
					"every wire of the cycle %s blocks when it is full", strings.Join(cycle, " → "))
			}
		}
		state[x] = 2
		path = path[:len(path)-1]
	}
	for _, x := range k.check.graph.Components {
		if state[x.Name] == 0 {
			visit(x.Name)
		}
	}
}

func answers(payload string) bool {
	p := component.PayloadOf(payload)
	return p.Answers
}

// answerOf returns the wire of a cycle that leads an answer back to who asked, or nil.
func (k *flowChecker) answerOf(edges map[string][]*Wire, cycle []string) *Wire {
	for i, from := range cycle[:len(cycle)-1] {
		for _, w := range edges[from] {
			if w.To == cycle[i+1] && answers(w.Payload) {
				return w
			}
		}
	}
	return nil
}

// unwired warns about ports that need a wire and have none.
func (k *checker) unwired() {
	wired := map[string]bool{}
	for _, w := range k.graph.Wires {
		wired[component.Qualified(w.From, w.Signal)] = true
		wired[component.Qualified(w.To, w.Slot)] = true
	}
	for _, x := range k.graph.Components {
		for _, p := range x.Manifest.Signals {
			if name := component.Qualified(x.Name, p.Name); !wired[name] && !p.Optional {
				k.Add("W101", x.table.key, "", "signal %q is not wired: its messages go nowhere", name)
			}
		}
		for _, p := range x.Manifest.Slots {
			if name := component.Qualified(x.Name, p.Name); !wired[name] && !p.Optional {
				k.Add("W102", x.table.key, "", "slot %q is not wired: it is never called", name)
			}
		}
		if x.maker != nil {
			unsaid(&k.Report, &x, wired)
		}
	}
}

// unsaid warns of ports of a plugin with rlhost's own payloads, which change with releases, where it does not say of which release: such a
// port is taken for one of this release.
func unsaid(r *Report, x *Component, wired map[string]bool) {
	var ports, schemas []string
	for _, p := range slices.Concat(x.Manifest.Signals, x.Manifest.Slots) {
		payload := component.PayloadOf(p.Payload)
		if payload.Own && p.Schema == 0 && wired[component.Qualified(x.Name, p.Name)] {
			ports = append(ports, fmt.Sprintf("%s (%s)", p.Name, p.Payload))
			schemas = append(schemas, fmt.Sprintf("%s 0x%016x", p.Payload, payload.Schema()))
		}
	}
	if len(ports) == 0 {
		return
	}
	at := x.table.key
	if n := x.table.at("plugin"); n != nil {
		at = n.val
	}
	r.Add("W117", at, "if it was written for this release, say so by the schemas of its ports: "+strings.Join(schemas, ", "),
		"component %q has ports of payloads that change with releases of rlhost, and does not say for which release it was written: %s",
		x.Name, strings.Join(ports, ", "))
}

// sharedQueues warns of two receivers that share the blocks of a queue. Components of one kind share work; of two kinds each is likely
// to want every block.
func (k *checker) sharedQueues() {
	for i := range k.graph.Wires {
		w := &k.graph.Wires[i]
		others := func(o Wire) bool {
			return o.From == w.From && o.Signal == w.Signal && o.Mode == bus.Queue && !k.sameKind(o.To, w.To)
		}
		if at := slices.IndexFunc(k.graph.Wires[:i], others); at >= 0 && w.Mode == bus.Queue && component.PayloadOf(w.Payload).Block {
			k.Add("W106", w.SlotAt, `write mode = "all" in both wires where each is to get all of them`,
				"%q shares a queue with %q: each block of %q goes to one of them", w.To, k.graph.Wires[at].To, component.Qualified(w.From, w.Signal))
		}
	}
}

// sameKind reports whether two components do the same work.
func (k *checker) sameKind(a, b string) bool {
	x, y := k.graph.Component(a), k.graph.Component(b)
	if x.Module != nil && y.Module != nil {
		return x.Module.Table.Use == y.Module.Table.Use
	}
	return x.Kind == y.Kind && x.Plugin == y.Plugin
}

// indexSuffix at the end of a loop's name is replaced by the index of the instance, so that each has a loop.
const indexSuffix = "[i]"

func trimIndex(loop string) string { return strings.TrimSuffix(loop, indexSuffix) }

// LoopOf returns the name of the loop of one instance.
func (x *Component) LoopOf(index int) string {
	if base, ok := strings.CutSuffix(x.Loop, indexSuffix); ok {
		return base + "[" + strconv.Itoa(index) + "]"
	}
	return x.Loop
}

// placeOnLoops gives every component a loop that has none, and in synchronous mode the one loop. A component
// that replies to another shares its loop; the others have one each.
func (k *checker) placeOnLoops() {
	for i := range k.graph.Components {
		x := &k.graph.Components[i]
		if k.graph.Synchronous {
			x.Loop = "main"
		}
	}
	for i := range k.graph.Components {
		x := &k.graph.Components[i]
		if x.Loop == "" {
			x.Loop = k.graph.defaultLoop(x)
		}
	}
}

// ownLoop is the loop of a component, or of each of its instances if a group counts them.
func (g *Graph) ownLoop(x *Component) string {
	if group := g.GroupOfComponent(x.Name); group != nil && group.Count > 0 {
		return x.Name + indexSuffix
	}
	return x.Name
}

func (g *Graph) defaultLoop(x *Component) string {
	for _, w := range g.Wires {
		if w.Mode != bus.Reply || w.From != x.Name || w.To == x.Name {
			continue
		}
		asker := g.Component(w.To)
		if asker.Loop != "" {
			return asker.Loop
		}
		return g.ownLoop(asker)
	}
	return g.ownLoop(x)
}
