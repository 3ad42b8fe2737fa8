// Command swap measures the cost of replacement in a run: it starts rlhost train as a user would and speaks to it over
// its control socket.
//
//	make build
//	go run ./bench/swap pauses        how long stepping pauses for a change: p50 and p99 over 1,000 changes, C, Rust and Go
//	go run ./bench/swap wrappers      the same for one wrapper of three, with the episodes kept
//	go run ./bench/swap many          10,000 changes in one run; the memory of its process, and the return of its policy
//	go run ./bench/swap throughput    env steps a second without a control socket, with it idle, status at 10 Hz, one tap
//	go run ./bench/swap shaper        env steps a second, and by processor time, with a component in a sandbox that shapes the rewards of each block
//	go run ./bench/swap components    1,000 changes of that component: the run's losses
//
// It is no test: it reports. The pauses of "the same boundary without a change" come from BenchmarkSwap in
// plugins/rollout.
package main
