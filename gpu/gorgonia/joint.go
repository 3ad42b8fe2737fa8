package gorgonia

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// joint is the layout of a network's actions, side by side in a graph's inputs: parameters, masks and actions, which are 1
// for the choice that was taken and 0 for others, or the drawn numbers of a Box. A single Categorical action needs none of
// it: its graph has the log-probabilities of all choices.
type joint struct {
	dists                  []head.Dist
	policy                 []policy.Dist
	sizes                  []policy.ActionSize
	elems, choices, action int // columns
}

func newJoint(n *policy.Network) *joint {
	j := &joint{dists: n.Dists(), policy: n.Policy, sizes: n.Sizes().Actions}
	for _, d := range j.dists {
		j.elems, j.choices = j.elems+d.Elems(), j.choices+d.Choices()
		j.action += width(d)
	}
	return j
}

// width is how many columns an action has.
func width(d head.Dist) int {
	if d.Continuous() {
		return d.Size()
	}
	return d.Choices()
}

// each calls do for every action with the columns where its own begin.
func (j *joint) each(do func(k int, d head.Dist, elem, choice, action int)) {
	elem, choice, action := 0, 0, 0
	for k, d := range j.dists {
		do(k, d, elem, choice, action)
		elem, choice, action = elem+d.Elems(), choice+d.Choices(), action+width(d)
	}
}

// rows returns the joint log-probability and entropy of each row, [rows, 1], and rowOf's drift, nil if no part has one.
func (j *joint) rows(params, mask, action *Node) (logProb, entropy, drift *Node, err error) {
	j.each(func(k int, d head.Dist, elem, choice, at int) {
		own := columns(params, elem, d.Elems())
		legal := mask
		if d.Choices() > 0 {
			legal = columns(mask, choice, d.Choices())
		}
		l, h, moves := rowOf(d, own, legal, columns(action, at, width(d)))
		switch {
		case err != nil:
		case l == nil:
			err = policy.Unsupported("action", j.policy[k].Action, d)
		case k == 0:
			logProb, entropy = l, h
		default:
			logProb, entropy = add(logProb, l), add(entropy, h)
		}
		switch {
		case drift == nil:
			drift = moves
		case moves != nil:
			drift = add(drift, moves)
		}
	})
	return logProb, entropy, drift, err
}

// beyond returns how far the means of Box actions lie outside of their edges, in half ranges and squared, as sums over rows [rows, 1];
// nil where there is none.
func (j *joint) beyond(params *Node) (sum *Node) {
	sizes := j.sizes
	j.each(func(k int, d head.Dist, elem, _, _ int) {
		edges := sizes[k].Edges
		if len(edges) == 0 {
			return
		}
		mean := columns(params, elem, len(edges))
		low, high, scales := make([]float64, len(edges)), make([]float64, len(edges)), make([]float64, len(edges))
		for i, e := range edges {
			low[i], high[i], scales[i] = float64(e.Low), float64(e.High), float64(e.Scale)
		}
		out := sub(positive(sub(mean, fillRow(mean, high))), positive(sub(fillRow(mean, low), mean)))
		row := sumRow(square(mul(out, fillRow(mean, scales))))
		if sum == nil {
			sum = row
		} else {
			sum = add(sum, row)
		}
	})
	return sum
}

// columns returns n columns of x from one on.
func columns(x *Node, from, n int) *Node {
	if n == x.Shape()[1] {
		return x
	}
	return chosen(x, n, fmt.Sprintf("columns from %d", from), func(i int) int { return i + from })
}

// placed returns x as columns from one on of a wider matrix that is otherwise zero.
func placed(x *Node, from, wide int) *Node {
	return chosen(x, wide, fmt.Sprintf("columns to %d", from), func(i int) int { return i - from })
}

// chosen returns a matrix whose column i is column of(i) of x, or zero if x has no such column.
func chosen(x *Node, cols int, what string, of func(i int) int) *Node {
	all := x.Shape()[1]
	p := pickOp{what: what, from: all, cols: cols, index: make([]int, cols)}
	for i := range p.index {
		if p.index[i] = of(i); p.index[i] < 0 || p.index[i] >= all {
			p.index[i] = -1
		}
	}
	return pick(x, p)
}

// loadRow enters the actions and masks of a row of a minibatch or of samples at a slot of the program.
func (j *joint) loadRow(actions []ppo.Actions, row, slot int, action, mask func(i int, x float64)) {
	j.each(func(k int, d head.Dist, _, choice, at int) {
		a := &actions[k]
		values := make([]float64, d.Size())
		a.Row(row, values)
		j.enter(k, d, values, slot*j.action+at, action)
		for i := range d.Choices() {
			mask(slot*j.choices+choice+i, 1)
		}
		for i, legal := range a.Masks(row, row+1) {
			mask(slot*j.choices+choice+i, float64(legal))
		}
	})
}

// enter writes an action to its columns.
func (j *joint) enter(k int, d head.Dist, values []float64, at int, set func(i int, x float64)) {
	if d.Continuous() {
		for i, x := range values {
			set(at+i, x)
		}
		return
	}
	for i, n := range j.policy[k].Counts() {
		for c := range n {
			x := 0.0
			if c == int(values[i]) {
				x = 1
			}
			set(at+c, x)
		}
		at += n
	}
}
