// Package kernels holds the kernels of the CUDA backend: CUDA C++ in *.cu and *.cuh, the PTX made from it, which a
// program embeds, and for each kernel the struct that is its one parameter. make kernels compiles them.
//
//	set, err := kernels.Load(device)
//	launch, args, err := kernels.New(set, kernels.DenseKernel)
//	args.A, args.Rows = …
//	launch.Grid = kernels.Tiles(rows, columns)
//	err = stream.Launch(launch)
//
// An element of a product is one ascending chain of fused multiply-adds from its bias on, in any tile, and elementary
// functions equal gpu/cpu's operation by operation. So acting gives gpu/cpu's bits, except convolutions that gpu/cpu computes
// in tiles, and learning the same bits on every device: gradients are sums of parts that the rows alone decide, and no float is ever
// added to by two threads. Tests check this over the interpreter of package ptx; on hardware it has not run yet.
//
// Shapes are arguments; no kernel is made for a network. Addresses and sizes are the caller's to get right: a kernel checks
// only input that a guest could have written.
package kernels
