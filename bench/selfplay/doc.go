// Command selfplay says how well a run has learned Connect Four: it plays a checkpoint's policy against a random player, against
// the first version that the run has stored, and against a search of two moves.
//
//	rlhost train examples/pipelines/connectfour.toml
//	go run ./bench/selfplay connectfour
package main
