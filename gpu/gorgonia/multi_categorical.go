package gorgonia

func multiCategoricalRow(counts []int, logits, mask, action *Node) (logProb, entropy *Node) {
	at := 0
	for i, n := range counts {
		l, h := categoricalRow(n, columns(logits, at, n), columns(mask, at, n), columns(action, at, n))
		if at += n; i == 0 {
			logProb, entropy = l, h
			continue
		}
		logProb, entropy = add(logProb, l), add(entropy, h)
	}
	return logProb, entropy
}
