// Package probe has environments whose values and best policies follow from what they are, and trains on them:
//
//	for _, p := range probe.All() {
//		for _, m := range probe.Modes() {
//			found, err := p.Train(ctx, m, seed)   // one for each of p.Known
//		}
//	}
//
// What is learned is read where the components read it: in the blocks of the last datasets.
package probe
