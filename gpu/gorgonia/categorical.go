package gorgonia

import "github.com/rlhost/rlhost/gpu/policy/head"

// illegal is added to the logits of illegal actions: far below every logit, far from overflow.
const illegal = -1e30

// categoricalOf returns the log-softmax of the legal actions. Adding illegal to a logit gives illegal itself, so that an
// illegal action's logit has no influence at all.
func categoricalOf(d *head.Categorical) dist {
	return func(logits, mask *Node) *Node {
		legal := add(mul(logits, mask), scale(sub(fill(mask, 1), mask), illegal))
		shifted := sub(legal, spread(rowMax(legal), d.N))
		return sub(shifted, spread(log(sumRow(exp(shifted))), d.N))
	}
}

func categoricalRow(n int, logits, mask, action *Node) (logProb, entropy *Node) {
	logProbs := categoricalOf(&head.Categorical{N: n})(logits, mask)
	return sumRow(mul(logProbs, action)), sumRow(mul(exp(logProbs), scale(logProbs, -1)))
}
