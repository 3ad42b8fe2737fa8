// Package fake is a CUDA driver in Go for tests: the functions of libcuda as callbacks of the C ABI, over the interpreter of
// package ptx. Callers of NVIDIA's driver call this one through the same table.
//
//	d := fake.New(fake.Options{Seed: 1})
//	defer d.Close()
//	table, err := driver.Bind(d.Lookup)
//
// It is stricter than a GPU. Submitted work runs when the host waits or asks for it, else a moment later; of several streams
// any may go first that events do not hold back, as Options.Seed says, so that a missing event shows. Memory of the device
// is poison until it is written and its addresses fault on the host. Copies from and to host memory that is not pinned are
// refused. Contexts belong to threads. A kernel's fault ends the context; Driver.Fault describes it.
//
// It does not take time into account, and runs one piece of work at a time.
package fake
