package gorgonia

// illegal is added to the logits of illegal actions: far below every logit, far from overflow.
const illegal = -1e30

// categorical is the log-softmax of the legal actions. Adding illegal to a logit gives illegal itself, so that an
// illegal action's logit has no influence at all.
func categorical(logits, mask *Node) *Node {
	actions := logits.Shape()[1]
	legal := add(mul(logits, mask), scale(sub(fill(mask, 1), mask), illegal))
	shifted := sub(legal, spread(rowMax(legal), actions))
	return sub(shifted, spread(log(sumRow(exp(shifted))), actions))
}
