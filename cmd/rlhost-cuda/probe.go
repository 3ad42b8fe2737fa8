package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/gpu/cuda"
)

// finding is the output of probe.
type finding struct {
	Device     string `json:"device,omitempty"`
	Capability string `json:"capability,omitempty"`
	Processors int    `json:"processors,omitempty"`
	Shared     int    `json:"shared_memory,omitempty"` // bytes, of a block of threads at most
	Memory     int    `json:"memory,omitempty"`        // bytes
	Driver     string `json:"driver,omitempty"`        // the newest CUDA that it knows
	Kernels    string `json:"kernels"`
	Error      string `json:"error,omitempty"`
	Help       string `json:"help,omitempty"`
}

// exitMissing is the status of probe where there is no device.
const exitMissing = 5

// probe prints the backend's findings as one line of JSON. It returns the exit status.
func probe(b *cuda.Backend) int {
	f, status := finding{Kernels: b.Kernels()}, 0
	d, err := b.Find()
	if err != nil {
		f.Error, f.Help, status = err.Error(), helpFor(err), exitMissing
	} else {
		f.Device, f.Capability, f.Driver = d.Name, fmt.Sprintf("%d.%d", d.Major, d.Minor), "CUDA "+d.CUDA()
		f.Processors, f.Shared, f.Memory = d.Processors, d.SharedMemory, d.Memory
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
