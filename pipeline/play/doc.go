// Package play steps one environment for people who look at it: a person, a policy or chance chooses the actions, and what has happened can
// be gone through again.
//
//	g, err := play.New(plugin, play.Options{Seed: 1})
//	defer g.Close()
//	g.By = play.Person
//	err = g.Choose([]float64{1})
//	err = g.Step()
//	picture, err := g.Colour(nil)
//
// A game remembers the seed and the actions of its episode: going back is playing them again. The package shows nothing and reads no keys.
package play
