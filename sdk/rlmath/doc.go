// Package rlmath has elementary functions with the same bits on every machine and in every language: they are the functions of rl_math.h,
// in the same order of the same IEEE operations.
//
//	height := 0.45*rlmath.Sin(3*x) + 0.55
//
// Package math has other bits on some machines, where it uses their instructions, and other bits than other languages; both can change
// a trajectory of a chaotic environment. A program for a machine with a fused multiply-add may fuse the author's own expressions: write
// float64(a*b) + c there. What is not a number comes back as one NaN, with one pattern of bits. Errors are at most 0.9 units of the last
// place (1.1 for Tan, 1.4 for Atan2, 2.2 for Asin and Acos, 2.6 for Tanh).
package rlmath
