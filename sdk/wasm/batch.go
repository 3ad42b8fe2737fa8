package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// errUnsupported says that the environment has no such method.
var errUnsupported = errors.New("not supported by this environment")

// Tensors in the order of the description.
const (
	tensorAction = iota
	tensorObs
	tensorReward
	tensorTerminated
	tensorTruncated
	tensorFinal
	tensorMask // of the first action, or what follows: a discount, who acts, figures, the observations after the first, each with its last one, the actions after the first, their masks
)

// batch is N environments and the memory that they are bound to. It does the autoreset.
type batch[A sdk.Action, O sdk.Element] struct {
	envs     sdk.Batch[A, O]
	mode     hostabi.Autoreset
	rngs     []sdk.Rand
	waiting  []bool // the episode is over and the environment waits for its reset
	idle     int    // how many wait
	now      int
	refused  bool       // the last step, for the action of environment now
	discrete *described // the action; nil for a Box
	legal    []uint8    // [agents, choices], room for the masks of one environment; nil without masks
	allLegal []uint8    // such of ones
	choices  int        // of all actions that have a mask
	saved    []byte     // what save returned last

	stateVersion uint32
	picture      sdk.Picture // its size

	agents int
	apart  bool    // the episodes of agents end apart
	kept   []uint8 // [envs, agents], whose last observation has been given in the step; nil where they do not respawn
	seen   []O     // the packed rows of the step under way, from environment from on
	from   int
	acts   []uint8 // [envs, agents], who acts; nil if all do always
	over   []uint8 // [envs, agents], whose episode has ended before its environment's; nil as acts

	bound      bool
	plain      bool // a step writes packed rows in their place, and nothing else
	action     tensor[A]
	obs, final tensor[O]
	reward     tensor[float32]
	terminated tensor[uint8]
	truncated  tensor[uint8]
	masks      []tensor[uint8]
	maskAt     []int // in the description
	discounts  bool
	discount   tensor[float32]
	active     tensor[uint8]
	figures    []tensor[float32]
	params     tensor[float32]   // the last of the description
	given      []float32         // [params] of the environment whose episode begins; nil where there are none
	told       []float32         // [envs, figures]
	firsts     []tensor[float32] // infos at reset, the last of the description
	firstTold  []float32         // of one environment
	written    uint32            // the row of the observations that are written
	tensors    int               // of the description
	more       int               // the first of the description after the mask of the first action
	parts      *parts            // several observations, in the place of obs and final
	moves      *moves            // several actions, in the place of action
}

func newBatch[A sdk.Action, O sdk.Element](descs []described, spec *sdk.Spec, envs sdk.Batch[A, O], n int, mode hostabi.Autoreset) *batch[A, O] {
	b := &batch[A, O]{envs: envs, mode: mode, stateVersion: spec.StateVersion, picture: sdk.Picture{Width: spec.PictureWidth, Height: spec.PictureHeight}, agents: spec.Agents, apart: spec.Apart,
		rngs: make([]sdk.Rand, n), waiting: make([]bool, n), idle: n}
	for i := range b.rngs {
		b.rngs[i], b.waiting[i] = sdk.NewRand(uint64(i)), true
	}
	b.tensors, b.more = len(descs), tensorMask
	if composite, ok := envs.(interface{ act(*moves) }); ok {
		b.moves = newMoves(descs, n)
		composite.act(b.moves)
	} else {
		b.action = newTensor[A](descs[tensorAction], n)
		if dtypeOf[A]() == hostabi.I32 && descs[tensorAction].count(0) > 0 {
			b.discrete = &descs[tensorAction]
		}
	}
	if dict, ok := envs.(interface{ observe(*parts) }); ok {
		b.parts = newParts(descs, n)
		dict.observe(b.parts)
	} else {
		b.obs = newTensor[O](descs[tensorObs], n)
		b.final = newTensor[O](descs[tensorFinal], n)
	}
	b.reward = newTensor[float32](descs[tensorReward], n)
	b.terminated = newTensor[uint8](descs[tensorTerminated], n)
	b.truncated = newTensor[uint8](descs[tensorTruncated], n)
	if len(descs) > tensorMask && descs[tensorMask].Role == hostabi.RoleActionMask {
		b.more++
	}
	for i, d := range descs {
		switch d.Role {
		case hostabi.RoleActionMask:
			b.masks, b.maskAt = append(b.masks, newTensor[uint8](d, n)), append(b.maskAt, i)
			b.choices += b.masks[len(b.masks)-1].row
		case hostabi.RoleDiscount:
			b.discounts, b.discount = true, newTensor[float32](d, n)
		case hostabi.RoleActive:
			b.active = newTensor[uint8](d, n)
			b.acts, b.over = make([]uint8, n*b.agents), make([]uint8, n*b.agents)
		case hostabi.RoleInfo:
			b.figures = append(b.figures, newTensor[float32](d, n))
		case hostabi.RoleResetInfo:
			b.firsts, b.firstTold = append(b.firsts, newTensor[float32](d, n)), append(b.firstTold, 0)
		case hostabi.RoleResetParam:
			b.params = newTensor[float32](d, n)
			b.given = make([]float32, b.params.elems)
		}
	}
	if b.choices > 0 {
		b.legal, b.allLegal = make([]uint8, b.agents*b.choices), bytes.Repeat([]byte{1}, b.agents*b.choices)
	}
	b.told = make([]float32, n*len(b.figures))
	if spec.Respawn {
		b.kept = make([]uint8, n*b.agents)
		envs.(sdk.BatchRespawner).SetLast(b.giveLast)
	}
	return b
}

func (b *batch[A, O]) size() int { return len(b.rngs) }

// current returns the environment being stepped.
func (b *batch[A, O]) current() int {
	if s, ok := b.envs.(interface{ current() int }); ok && !b.refused {
		return s.current()
	}
	return b.now
}

func (b *batch[A, O]) bind(list []hostabi.Binding) hostabi.Status {
	if len(list) != b.tensors {
		return hostabi.StatusArgument
	}
	ok := b.bindActions(list) && b.bindObs(list) &&
		b.reward.bind(list[tensorReward], true) && b.terminated.bind(list[tensorTerminated], true) &&
		b.truncated.bind(list[tensorTruncated], true) && b.bindMore(list)
	b.bound = ok
	if !ok {
		return hostabi.StatusArgument
	}
	b.plain = b.obs.packed && b.reward.packed && b.terminated.packed && b.truncated.packed &&
		(b.final.packed || b.mode != hostabi.SameStep) && len(list) == tensorMask
	return hostabi.StatusOK
}

// bindActions binds the actions and their masks.
func (b *batch[A, O]) bindActions(list []hostabi.Binding) bool {
	ok := true
	for j := range b.masks {
		ok = b.masks[j].bind(list[b.maskAt[j]], true) && ok
	}
	if b.moves != nil {
		return b.moves.bind(list) && ok
	}
	return b.action.bind(list[tensorAction], true) && ok
}

func (b *batch[A, O]) bindObs(list []hostabi.Binding) bool {
	sameStep := b.mode == hostabi.SameStep
	if b.parts == nil {
		return b.obs.bind(list[tensorObs], true) && b.final.bind(list[tensorFinal], sameStep)
	}
	return b.parts.bind(list, b.more+int(flag(b.discounts))+int(flag(b.acts != nil))+len(b.figures), sameStep)
}

// bindMore binds the discount, who acts and the figures. A host need not want figures.
func (b *batch[A, O]) bindMore(list []hostabi.Binding) bool {
	at, ok := b.more, true
	if b.discounts {
		ok = b.discount.bind(list[at], true)
		at++
	}
	if b.acts != nil {
		ok = b.active.bind(list[at], true) && ok
		at++
	}
	for k := range b.figures {
		ok = b.figures[k].bind(list[at+k], false) && ok
	}
	if b.given != nil {
		ok = b.params.bind(list[len(list)-1-len(b.firsts)], false) && ok
	}
	for k := range b.firsts {
		ok = b.firsts[k].bind(list[len(list)-len(b.firsts)+k], false) && ok
	}
	return ok
}

// writeAt sets the time of the observations that are written.
func (b *batch[A, O]) writeAt(t uint32) {
	b.written = t
	if b.parts != nil {
		b.parts.t = t
	}
}

func (b *batch[A, O]) setWaiting(i int, waiting bool) {
	if b.waiting[i] != waiting {
		b.waiting[i] = waiting
		b.idle += 2*int(flag(waiting)) - 1
	}
}

// begin starts an episode of environment i.
func (b *batch[A, O]) begin(i int, obs []O) {
	b.now = i
	b.setWaiting(i, false)
	if b.given != nil {
		b.giveParams(i)
	}
	b.envs.Reset(i, &b.rngs[i], obs)
	if b.firsts != nil {
		b.tellFirst(i)
	}
	if b.over != nil {
		clear(b.over[i*b.agents:][:b.agents])
	}
}

// tellFirst writes the infos of the episode that begins in environment i.
func (b *batch[A, O]) tellFirst(i int) {
	clear(b.firstTold)
	b.envs.(sdk.BatchResetTeller).TellReset(i, b.firstTold)
	for k := range b.firsts {
		if info := &b.firsts[k]; info.base != nil {
			*info.at(b.written, i, 0) = b.firstTold[k]
		}
	}
}

// giveParams tells environment i the reset parameters of its next episode, NaN where the host has none.
func (b *batch[A, O]) giveParams(i int) {
	if b.params.base != nil {
		b.params.read(0, i, b.given)
	} else {
		for k := range b.given {
			b.given[k] = float32(math.NaN())
		}
	}
	b.envs.(sdk.BatchParamTaker).SetParams(i, b.given)
}

func (b *batch[A, O]) reset(t uint32, mask []uint8, seeds []byte) hostabi.Status {
	if !b.bound {
		return hostabi.StatusState
	}
	b.writeAt(t)
	for i := range b.rngs {
		if mask != nil && mask[i] == 0 {
			continue
		}
		if seeds != nil {
			b.rngs[i] = sdk.NewRand(binary.LittleEndian.Uint64(seeds[8*i:]))
		}
		row := b.obs.rows(t, i, 1)
		b.begin(i, row)
		b.obs.write(t, i, row)
		b.writeActive(t, i, 1)
		b.writeMask(t, i, 1)
	}
	return hostabi.StatusOK
}

// writeMask writes the masks of time t: the author's, and all ones where the next step reads no action: after an end, and for agents
// that do not act.
func (b *batch[A, O]) writeMask(t uint32, first, count int) {
	if b.legal == nil {
		return
	}
	for i := first; i < first+count; i++ {
		if b.waiting[i] {
			copy(b.legal, b.allLegal)
		} else {
			b.envs.(sdk.BatchMasker).ActionMask(i, b.legal)
			b.freeIdle(i)
		}
		b.writeLegal(t, i)
	}
}

// writeLegal writes the legal values in environment i to the mask of each action.
func (b *batch[A, O]) writeLegal(t uint32, i int) {
	at := 0
	for j := range b.masks {
		mask := &b.masks[j]
		row := mask.rows(t, i, 1)
		for k := range b.agents {
			copy(row[k*mask.row:][:mask.row], b.legal[k*b.choices+at:])
		}
		mask.write(t, i, row)
		at += mask.row
	}
}

// everyEnv is the count of a step of all environments.
const everyEnv = -1

// step advances environments first … first+count-1, or all. A call costs a guest in Go as much as half a step of CartPole, so step itself
// checks for parts that an environment lacks.
func (b *batch[A, O]) step(t uint32, first, count int) hostabi.Status {
	if !b.bound || (b.idle > 0 && b.mode == hostabi.SameStep) {
		return hostabi.StatusState // reset first
	}
	if count == everyEnv {
		count = len(b.rngs)
	}
	if count == 0 {
		return hostabi.StatusOK
	}
	figures := len(b.figures)
	rows := sdk.Rows[A, O]{ // each field, or all would be cleared first
		Discounts:  nil,
		Figures:    b.told[first*figures : (first+count)*figures],
		Actions:    b.action.rows(t, first, count),
		Obs:        b.obs.rows(t+1, first, count),
		Rewards:    b.reward.rows(t, first, count),
		Terminated: b.terminated.rows(t, first, count),
		Truncated:  b.truncated.rows(t, first, count),
	}
	if !b.action.packed {
		b.action.read(t, first, rows.Actions)
	}
	if b.moves != nil {
		b.moves.open(t, first, count)
	}
	b.refused = false
	// No choice is larger than all of them put together.
	if b.discrete == nil || b.discrete.Start != 0 || together(asUint32(rows.Actions)) >= b.discrete.N {
		if b.refused = !b.actionsOK(first, rows.Actions); b.refused {
			return hostabi.StatusAction
		}
	}
	if figures > 0 {
		clear(rows.Figures)
	}
	if b.discounts {
		rows.Discounts = b.discount.rows(t, first, count)
	}
	b.writeAt(t + 1)
	for i := 0; i < count; {
		k := i
		for k < count && (b.idle == 0 || !b.waiting[first+k]) {
			k++
			if b.idle == 0 {
				k = count
			}
		}
		if k > i {
			part := &rows
			if k-i < count {
				some := span(rows, count, i, k)
				part = &some
			}
			b.run(first+i, k-i, part)
		}
		if k < count {
			b.rest(t, first+k, span(rows, count, k, k+1))
			k++
		}
		i = k
	}
	if !b.plain {
		b.write(t, first, count, &rows)
	}
	return hostabi.StatusOK
}

// write writes the results of a step of these environments.
func (b *batch[A, O]) write(t uint32, first, count int, rows *sdk.Rows[A, O]) {
	b.obs.write(t+1, first, rows.Obs)
	b.reward.write(t, first, rows.Rewards)
	b.terminated.write(t, first, rows.Terminated)
	b.truncated.write(t, first, rows.Truncated)
	if b.discounts {
		b.discount.write(t, first, rows.Discounts)
	}
	if len(b.figures) > 0 {
		b.tell(t, first, rows.Figures)
	}
	if b.acts != nil {
		b.writeActive(t+1, first, count)
	}
	if b.legal != nil {
		b.writeMask(t+1, first, count)
	}
}

// tell writes the figures that the host wants.
func (b *batch[A, O]) tell(t uint32, first int, rows []float32) {
	for k := range b.figures {
		figure := &b.figures[k]
		if figure.base == nil {
			continue
		}
		for i := 0; i < len(rows); i += len(b.figures) {
			*figure.at(t, first+i/len(b.figures), 0) = rows[i+k]
		}
	}
}

// span returns the rows of environments from … to-1 out of n.
func span[A sdk.Action, O sdk.Element](r sdk.Rows[A, O], n, from, to int) sdk.Rows[A, O] {
	return sdk.Rows[A, O]{
		Discounts:  cut(r.Discounts, n, from, to),
		Figures:    cut(r.Figures, n, from, to),
		Actions:    cut(r.Actions, n, from, to),
		Obs:        cut(r.Obs, n, from, to),
		Rewards:    cut(r.Rewards, n, from, to),
		Terminated: cut(r.Terminated, n, from, to),
		Truncated:  cut(r.Truncated, n, from, to),
	}
}

// cut is span for one of the slices.
func cut[T any](rows []T, n, from, to int) []T {
	elems := len(rows) / n
	return rows[from*elems : to*elems]
}

// actionsOK checks every discrete action before anything moves, so that a bad one changes no environment.
func (b *batch[A, O]) actionsOK(first int, actions []A) bool {
	if b.moves == nil {
		return b.discrete == nil || b.choicesOK(b.discrete, b.action.elems, first, asUint32(actions))
	}
	for _, x := range b.moves.list {
		if d, elems, choices := x.choices(); d != nil && !b.choicesOK(d, elems, first, choices) {
			return false
		}
	}
	return true
}

// choicesOK checks one of the actions, which has so many elements in each environment.
func (b *batch[A, O]) choicesOK(d *described, elems, first int, choices []uint32) bool {
	if d.Start == 0 && together(choices) < d.N {
		return true
	}
	row := elems / b.agents
	for k, a := range choices {
		if a-uint32(d.Start) >= d.count(k%row) && !b.waiting[first+k/elems] && b.acting(first*b.agents+k/row) {
			b.now = first + k/elems
			return false
		}
	}
	return true
}

// run steps n environments that wait for nothing and ends the episodes that are over.
func (b *batch[A, O]) run(first, n int, rows *sdk.Rows[A, O]) {
	b.now = first
	if b.kept != nil {
		b.seen, b.from = rows.Obs, first
	}
	b.envs.Step(first, b.rngs[first:first+n], *rows)
	if b.kept != nil {
		for i := range n {
			b.respawn(first+i, span(*rows, n, i, i+1))
		}
		return
	}
	if b.apart {
		for i := range n {
			b.endApart(first+i, span(*rows, n, i, i+1))
		}
		return
	}
	terminated, truncated := rows.Terminated[:n], rows.Truncated[:n]
	for i := 0; i < n; i++ {
		if n-i >= 8 && eight(terminated, i)|eight(truncated, i) == 0 {
			i += 7
			continue
		}
		if terminated[i]|truncated[i] == 0 {
			continue
		}
		if terminated[i] != 0 {
			truncated[i] = 0
		}
		obs := rows.Obs[i*b.obs.elems:][:b.obs.elems]
		if !b.plain || b.mode != hostabi.SameStep {
			b.end(first+i, obs)
			continue
		}
		// This is end without its calls.
		for k, last := 0, b.final.rows(0, first+i, 1); k < len(obs) && k < len(last); k++ {
			last[k] = obs[k]
		}
		b.now = first + i
		b.envs.Reset(b.now, &b.rngs[b.now], obs)
	}
}

// end handles the end of an episode of environment i, by the autoreset mode. obs is its last observation.
func (b *batch[A, O]) end(i int, obs []O) {
	if b.mode != hostabi.SameStep {
		b.setWaiting(i, true)
		return
	}
	b.keepLast(i, 0, b.agents, obs)
	b.begin(i, obs)
}

// keepLast makes what agents from … to-1 of environment i observe their last observations.
func (b *batch[A, O]) keepLast(i, from, to int, obs []O) {
	if b.parts == nil {
		b.final.keep(i, from, to, obs)
		return
	}
	for k := from; k < to; k++ {
		b.parts.end(i, k)
	}
}

// rest is the step of an environment whose episode is over: a new episode under next-step autoreset, and
// nothing but the same observation where the host resets.
func (b *batch[A, O]) rest(t uint32, i int, rows sdk.Rows[A, O]) {
	rows.Rewards[0], rows.Terminated[0], rows.Truncated[0] = 0, 0, 0
	clear(rows.Discounts)
	if b.mode == hostabi.NextStep {
		b.begin(i, rows.Obs)
		return
	}
	if b.parts != nil {
		b.parts.repeat(i)
	} else {
		b.obs.read(t, i, rows.Obs)
	}
}
