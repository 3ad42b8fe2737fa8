// Learn trains the tasks of docs/results/learning.md over several seeds with the presets of this repository, and judges them by the
// frozen evaluation that each run ends with: 100 episodes, with the most probable actions and with sampled ones.
//
//	go run ./bench/learn test      3 seeds of each task with a bar (10 of brief tasks), one of each probe; fails where a bar is missed
//	go run ./bench/learn train     10 seeds of each, 3 of each probe, and CartPole with scaled rewards; continues an interrupted call
//	go run ./bench/learn page      writes the tables of docs/results/learning.md from the folder results
//
// Probes are trained too: environments whose values are known, which every mode has to learn.
//
// Trainings are in synchronous mode where the preset says so: then a figure is the same on every machine with the same set of
// kernels, whatever else runs there; only the seconds differ.
package main
