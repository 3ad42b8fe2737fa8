// Package driver calls NVIDIA's driver, libcuda, which it loads when it is opened: programs that import it are built
// without a C compiler and start on machines without a GPU.
//
//	table, err := driver.Open(driver.Library)
//	device, err := table.Device(0)
//	module, err := device.Load(ptx)
//	function, err := module.Function("name")
//	launch, args, err := driver.NewLaunch[Args](function)
//	stream, err := device.Stream(driver.High)
//	err = stream.Launch(launch)
//
// Calls are made on the caller's thread: the goroutine is locked to it, the context of the device made current on it, the call
// made. None of the types here copies to or from memory of Go's heap: a device reads and writes its own Memory, memory
// that it can reach (Pinned) or a mapping that was given to it (Registration).
//
// The table need not come from libcuda: Bind takes functions of the C ABI by name from any source, so tests run
// over a driver that is written in Go.
//
// A Device may be used by several goroutines at once, a Stream, a Launch or an Event by one at a time.
package driver
