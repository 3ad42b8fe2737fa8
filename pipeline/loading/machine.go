package loading

import (
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/pipeline/graph"
)

// Memory returns the most memory that this process may take, 0 if unknown, and who says so: the program, by its parts, or else the
// machine.
func Memory(parts *graph.Parts) (bytes int64, whose string) {
	if parts.Memory != 0 {
		return parts.Memory, "the limit"
	}
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 53)
			bytes, whose = kib<<10, "the memory of the machine"
		}
	}
	text, _ = os.ReadFile("/proc/self/cgroup")
	_, group, found := strings.Cut(string(text), "0::")
	group, _, _ = strings.Cut(group, "\n")
	for ; found && group != ""; group = path.Dir(group) {
		text, _ := os.ReadFile(path.Join("/sys/fs/cgroup", group, "memory.max"))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (bytes == 0 || n < bytes) {
			bytes, whose = n, "the limit of control group "+group
		}
		if group == "/" {
			break
		}
	}
	return bytes, whose
}
