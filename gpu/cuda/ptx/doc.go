// Package ptx runs CUDA kernels on the processor, for tests without a GPU, and finds faults that a GPU lets pass: it reads the PTX that nvcc
// writes and executes it, thread by thread, with the bits that the ISA says for f32 and f64; they are not yet compared with hardware.
//
//	module, err := ptx.Parse(text)
//	memory := ptx.NewMemory()
//	x := memory.Alloc(4 * n)
//	entry := module.Entry("scale")
//	args, err := entry.Args(x, float32(2), int32(n))
//	err = entry.Launch(memory, &ptx.Launch{Grid: [3]int{4, 1, 1}, Block: [3]int{128, 1, 1}, Args: args})
//
// Each instruction becomes a function on registers of 32 lanes; the instructions that kernels spend their time with, and words moved
// among them, compute whole registers in one loop. Lanes that a branch divides continue in groups, which meet again
// where their ways do. CTAs run on all processors, their warps in turns; Launch.Seed orders both.
//
// A launch ends with a *Fault, which names the kind, the line, the CTA and the thread, where a kernel leaves its allocations, reads
// memory that was never written, races within a CTA or between two, comes to a barrier with a part of its threads, and more: see
// Kind. Unwritten values may be moved around; deciding, addressing or keeping something by them is the fault.
//
// It does not model time, caches, or that writes become visible to other CTAs late and in another order: where fences are
// missing it faults only as GlobalRace and Unfenced say. Floats round to the nearest alone. PTX that the kernels of this repository do
// without is refused by Parse, except the PTX that nvcc may write of any source, and mma.
package ptx
