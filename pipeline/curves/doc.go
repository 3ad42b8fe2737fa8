// Package curves reads the learning curves of runs and draws them.
//
//	c, _, err := curves.Read("runs/cartpole/0001", "charts/episodic_return", curves.EnvSteps)
//	band := curves.Over([]curves.Curve{c, …}, 200)                 // mean and interval over seeds
//	err = curves.Draw(w, curves.Picture{Format: "svg", Lines: []curves.Line{{Label: "fast", Band: band}}})
//	fmt.Println(curves.Sparkline(c.Y, 40))
package curves
