// Package seeds judges a pipeline by many runs that differ in their seed alone.
//
//	scores := []float64{…}                                   // one of each seed
//	s := seeds.Summarize([][]float64{scores}, seeds.Options{})
//	fmt.Println(s.IQM.Value, s.IQM.Low, s.IQM.High)
//	p := seeds.Improvement([][]float64{a}, [][]float64{b}, seeds.Options{})
//
// Scores are of one task or of several: one row a task, one score a seed. The aggregates, their stratified bootstrap intervals
// where there are many scores, and the probability of improvement follow Agarwal et al., "Deep Reinforcement Learning at the
// Edge of the Statistical Precipice" (2021), sections 4.1 to 4.3, as the package rliable computes them. With few seeds
// intervals are Student's t.
package seeds
