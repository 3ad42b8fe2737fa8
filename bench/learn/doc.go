// Learn trains the tasks of docs/learning.md over several seeds with the presets of this repository, and judges what came of
// them by the frozen evaluation that each run ends with: 100 episodes, the most likely action.
//
//	go run ./bench/learn test     3 seeds of each task; fails where the mean is below the bar
//	go run ./bench/learn table    10 seeds, and CartPole with scaled rewards; writes the tables of docs/learning.md
//
// Trainings are in synchronous mode where the preset says so: then a figure is the same on every machine with the same set of
// kernels, whatever else runs there; only the seconds differ.
package main
