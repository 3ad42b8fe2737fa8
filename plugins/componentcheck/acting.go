package componentcheck

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

// acting watches which elements of the columns of actions an instance writes that is asked for actions. The elements that may be
// written have the value prior before it is called: what it leaves as it was has another value in another play.
type acting struct {
	prior  byte   // 0 or 1
	policy string // that the instance plays
	asked  int    // rows of agents that it must write
	left   map[spot]bool
	stray  string // the first element that it wrote and that is not its own

	before []byte // the block before the call
}

// spot is an agent's action in a request: the request, the row of the block, and the row of the agents.
type spot struct{ request, t, row int }

// prepare puts the values into a block that may be written. It does nothing for blocks that have no columns.
func (a *acting) prepare(x *item, block []byte) {
	a.before = nil
	s, ok := x.schema.(*trajectory.Schema)
	if !ok || x.payload.Name != component.PayloadRequest {
		return
	}
	tr, r := trajectory.Trajectory{Schema: s, Mem: block}, trajectory.ActRequestOf(&x.message)
	for _, l := range s.Columns() {
		for t := r.T; l.Column.Kind() == trajectory.Action && t < l.Rows; t++ {
			m := tr.Row(l.Column, t)
			for row := range m.Rows {
				for e := range m.Elems {
					a.put(m.Data[row*m.StrideRow+e*m.StrideElem:], m.DType)
				}
			}
		}
	}
	a.before = slices.Clone(block)
}

// put writes the number prior.
func (a *acting) put(to []byte, dtype hostabi.DType) {
	switch {
	case dtype == hostabi.F32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(a.prior)))
	default:
		clear(to[:dtype.Bytes()])
		to[0] = a.prior
	}
}

// look compares the block of an answered request with its contents before the call.
func (a *acting) look(x *item, block []byte, request int) {
	if a.before == nil {
		return
	}
	s := x.schema.(*trajectory.Schema)
	place, _ := s.PolicyPlace(a.policy)
	mine, err := s.Of(a.policy)
	if err != nil {
		return // the call has failed with it
	}
	before, after := trajectory.Trajectory{Schema: s, Mem: a.before}, trajectory.Trajectory{Schema: s, Mem: block}
	r := trajectory.ActRequestOf(&x.message)
	for _, l := range s.Columns() {
		if l.Column.Kind() != trajectory.Action {
			continue
		}
		own := slices.ContainsFunc(mine.Columns(), func(o trajectory.Layout) bool { return o.Offset == l.Offset })
		for t := range l.Rows {
			was, is := before.Row(l.Column, t), after.Row(l.Column, t)
			for row := range is.Rows {
				asked := own && t == r.T && !r.ValueOnly && plays(after, t, row, place)
				a.compare(was, is, l.Column, spot{request, t, row}, asked, s.Agents)
			}
		}
	}
}

// plays reports whether a policy decides for an agent in row t.
func plays(tr trajectory.Trajectory, t, row, place int) bool {
	acts, policies := tr.Acts(t), tr.Policies(t)
	return (acts == nil || acts[row] != 0) && (policies == nil || int(policies[row]) == place)
}

// compare looks at one agent's action, which the component was asked for or not.
func (a *acting) compare(was, is trajectory.Matrix, c trajectory.Column, at spot, asked bool, agents int) {
	same := true
	for e := range is.Elems {
		k, size := at.row*is.StrideRow+e*is.StrideElem, is.DType.Bytes()
		same = same && slices.Equal(was.Data[k:][:size], is.Data[k:][:size])
	}
	switch {
	case asked:
		if a.asked++; same {
			a.left[at] = true
		}
	case !same:
		a.stray = cmp.Or(a.stray, fmt.Sprintf("request %d: it writes %v of %s, which is not asked for", at.request, c, at.in(agents)))
	}
}

// in says where the action is.
func (p spot) in(agents int) string {
	return fmt.Sprintf("row %d, environment %d, agent %d", p.t, p.row/agents, p.row%agents)
}

// acts checks which actions the component writes.
func (k *checker) acts() (envcheck.Verdict, string, error) {
	if !slices.ContainsFunc(k.items, func(x item) bool { return x.payload.Name == component.PayloadRequest }) {
		return envcheck.OK, "it gets no act_request", nil
	}
	var plays [2]*acting
	for prior := range plays {
		a := &acting{prior: byte(prior), policy: k.policy, left: map[spot]bool{}}
		s, err := k.begin(nil)
		s.acting = a
		if err == nil {
			err = s.playAll(k.items)
		}
		if err = cmp.Or(err, s.end()); err != nil {
			return envcheck.Failed, "", err
		}
		plays[prior] = a
	}
	if stray := cmp.Or(plays[0].stray, plays[1].stray); stray != "" {
		return envcheck.Failed, stray, nil
	}
	left, first := 0, spot{request: math.MaxInt}
	for p := range plays[0].left {
		if plays[1].left[p] {
			left++
			if slices.Compare([]int{p.request, p.t, p.row}, []int{first.request, first.t, first.row}) < 0 {
				first = p
			}
		}
	}
	if left > 0 {
		return envcheck.Failed, fmt.Sprintf("request %d: it does not write action of %s, and %d of %d actions in all",
			first.request, first.in(agentsOf(k.items)), left, plays[0].asked), nil
	}
	return envcheck.OK, fmt.Sprintf("%d actions", plays[0].asked), nil
}

// agentsOf returns how many agents an environment of the requests' blocks has.
func agentsOf(items []item) int {
	for _, x := range items {
		if s, ok := x.schema.(*trajectory.Schema); ok && x.payload.Name == component.PayloadRequest {
			return s.Agents
		}
	}
	return 1
}
