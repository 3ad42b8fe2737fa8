// Package probe has environments whose values and best policies can be computed, and trains on them:
//
//	for _, p := range probe.All() {
//		for _, m := range probe.Modes() {
//			found, err := p.Train(ctx, m, seed)   // one for each of p.Known
//		}
//	}
//
// Results are read where the components read them: in the blocks of the last datasets.
package probe
