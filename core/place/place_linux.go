package place

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// set returns the cores as the kernel takes them.
func (c Cores) set() (set unix.CPUSet) {
	for _, core := range c {
		set.Set(core)
	}
	return set
}

// Available returns the processors that this program may use: fewer than the machine has where its control group, a taskset or a container
// says so. It must not be called on a goroutine that Pin has placed.
func Available() (Cores, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("processors of this program: %w", err)
	}
	var cores Cores
	for core := range MaxCores {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores, nil
}

// Pin gives the calling goroutine a thread of its own, which runs on these processors alone. The goroutine keeps it until Unpin, or until
// it ends. Processors that this program may not use are left out; the error is the kernel's where none is left.
func (c Cores) Pin() error {
	runtime.LockOSThread()
	set := c.set()
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cores %v: %w", c, err)
	}
	return nil
}

// Unpin undoes a Pin of the same goroutine: its thread may run on all these processors again, and serves other goroutines too.
func (c Cores) Unpin() error {
	set := c.set()
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("cores %v: %w", c, err) // the thread stays the goroutine's own: no other may inherit its place
	}
	runtime.UnlockOSThread()
	return nil
}

// SetNice sets the priority of the calling thread for good: raising it again needs a right. What the thread starts inherits it.
func SetNice(nice int) error {
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice); err != nil {
		return fmt.Errorf("nice %d: %w", nice, err)
	}
	return nil
}

// capSysNice is the number of the capability to set any priority (capabilities(7)).
const capSysNice = 23

// LowestNice returns the lowest nice value that this program may give to what it starts: the one it has itself, unless it has a right.
func LowestNice() (int, error) {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0, fmt.Errorf("priority of this program: %w", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NICE, &limit); err != nil {
		return 0, fmt.Errorf("limit on priorities: %w", err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("capabilities: %w", err)
	}
	held, err := effective(string(status))
	if err != nil {
		return 0, err
	}
	if held&(1<<capSysNice) != 0 {
		return MinNice, nil
	}
	// The kernel counts from 20 down in both numbers: 20 - nice.
	return min(20-own, 20-int(min(limit.Cur, 40))), nil
}

// effective returns the capabilities that a process has, from its status file.
func effective(status string) (uint64, error) {
	for line := range strings.Lines(status) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			held, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("capabilities: %w", err)
			}
			return held, nil
		}
	}
	return 0, errors.New("capabilities: the kernel names none")
}
