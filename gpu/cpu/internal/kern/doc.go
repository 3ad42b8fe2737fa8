// Package kern holds the loops that a policy spends its time in: matrix products with fused epilogues, heads,
// action sampling, the PPO loss with its gradient, Adam. Every kernel exists in plain Go and, for amd64, as
// generated assembly; a Set names one choice of them.
//
//	set := kern.Detect()
//	set.Gemm(&kern.Gemm{M: rows, N: 64, K: 4, A: obs, ARow: 4, ACol: 1, B: w, BRow: 16, BPanel: 64, …})
//
// Kernels know nothing of networks. All of them treat rows independently: no bit of a row's result depends on the
// other rows, on its position or on the strides it was read with. They allocate nothing and run on the caller's
// goroutine; one call into assembly stays below 200 µs because it cannot be preempted.
package kern
