package control

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
)

// Resources are a job's process's resources. They stay about the same during a run, however much is replaced.
type Resources struct {
	Goroutines  int    `json:"goroutines"`
	Descriptors int    `json:"descriptors"`
	Mappings    int    `json:"mappings"`
	Resident    uint64 `json:"resident_bytes"`
}

// ReadResources returns this process's resources; values that the system does not report are 0.
func ReadResources() Resources {
	r := Resources{Goroutines: runtime.NumGoroutine()}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		r.Descriptors = len(list) - 1 // one is that folder
	}
	if b, err := os.ReadFile("/proc/self/maps"); err == nil {
		r.Mappings = bytes.Count(b, []byte{'\n'})
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(b); len(fields) > 1 {
			pages, _ := strconv.ParseUint(string(fields[1]), 10, 64)
			r.Resident = pages * uint64(os.Getpagesize())
		}
	}
	return r
}
