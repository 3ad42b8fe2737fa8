package shm

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkMemory rejects a size that is not available: the kernel would hand out pages until it kills some process.
func checkMemory(size int) error {
	if free := availableMemory("/"); uint64(size) > free {
		return fmt.Errorf("%w: %d bytes are available", ErrMemory, free)
	}
	return nil
}

// checkFileSize rejects a file larger than ulimit -f: growing it would end this process with a signal.
func checkFileSize(size int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && uint64(size) > limit.Cur {
		return fmt.Errorf("%w: ulimit -f allows files of %d bytes", ErrMemory, limit.Cur)
	}
	return nil
}

// hierarchy says where one version of control groups keeps its numbers.
type hierarchy struct {
	line         string // what precedes the group's path in /proc/self/cgroup, after the number of the hierarchy
	mount        string
	limit, usage string
	cached       [2]string // in memory.stat: memory that is given up before the limit bites
}

func hierarchies() [2]hierarchy {
	return [2]hierarchy{
		{"::", "sys/fs/cgroup", "memory.max", "memory.current", [2]string{"active_file", "inactive_file"}},
		{":memory:", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
			[2]string{"total_active_file", "total_inactive_file"}},
	}
}

// availableMemory returns how many bytes the machine and the control groups of this process still allow, as far
// as /proc and /sys under root say; MaxUint64 if they say nothing.
func availableMemory(root string) uint64 {
	free := uint64(math.MaxUint64)
	if kib, ok := field(filepath.Join(root, "proc/meminfo"), "MemAvailable:"); ok && kib < math.MaxUint64>>10 {
		free = kib << 10
	}
	for _, h := range hierarchies() {
		group := h.group(filepath.Join(root, "proc/self/cgroup"))
		for {
			free = min(free, h.free(filepath.Join(root, h.mount, group), free))
			if group == "/" {
				break
			}
			group = filepath.Dir(group)
		}
	}
	return free
}

// group returns the path of this process in the hierarchy, "/" if unknown.
func (h hierarchy) group(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "/"
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimLeft(bytes.TrimSpace(line), "0123456789")
		if path, ok := bytes.CutPrefix(line, []byte(h.line)); ok {
			return filepath.Clean("/" + string(path))
		}
	}
	return "/"
}

// free returns how many bytes the limit of the group in folder dir leaves, MaxUint64 if it has none, or enough if it is
// at least so many. Cached files count as free; that number takes the kernel longest, so it is only read if it matters.
func (h hierarchy) free(dir string, enough uint64) uint64 {
	limit, ok := number(filepath.Join(dir, h.limit))
	if !ok {
		return math.MaxUint64
	}
	used, ok := number(filepath.Join(dir, h.usage))
	if !ok {
		return limit
	}
	if limit-min(limit, used) >= enough {
		return enough
	}
	for _, name := range h.cached {
		cached, _ := field(filepath.Join(dir, "memory.stat"), name)
		used -= min(used, cached)
	}
	return limit - min(limit, used)
}

// number returns the only number in a file.
func number(file string) (uint64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	return n, err == nil
}

// field returns the number that follows a name at the start of a line.
func field(file, name string) (uint64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		words := bytes.Fields(line)
		if len(words) >= 2 && string(words[0]) == name {
			n, err := strconv.ParseUint(string(words[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
