package spawn

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// groups makes control groups (cgroups(7), version 2) below the host's own, one for each process that is started: the children of a process
// are in its group, and without the right to write there they cannot leave. The zero groups makes none, as does a host that may not make any.
type groups struct {
	mu     sync.Mutex
	dir    string   // the host's own group; empty: none can be made
	prefix string   // of the names of this process's
	ended  []string // killed, and not removed yet: the kernel keeps a group until its last process is gone
}

// openGroups finds the host's own group, and kills and removes the groups that killed hosts left there.
func openGroups(root string) *groups {
	g := &groups{dir: ownGroup(root)}
	started, err := startTime(os.Getpid())
	if g.dir == "" || err != nil {
		return &groups{}
	}
	g.prefix = folderPrefix + strconv.Itoa(os.Getpid()) + "-" + started + "-"
	for _, name := range orphans(g.dir) {
		endGroup(filepath.Join(g.dir, name))
		_ = os.Remove(filepath.Join(g.dir, name)) // if it is not empty yet, the next host does it
	}
	return g
}

// ownGroup returns the folder of this process's group, or nothing if there is none. root is the root of the file system.
func ownGroup(root string) string {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return ""
	}
	member, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}
	path := ""
	for line := range strings.Lines(string(member)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(rest, "\n")
		}
	}
	for line := range strings.Lines(string(mounts)) {
		about, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(about)
		if path == "" || len(fields) < 5 || !strings.HasPrefix(kind, "cgroup2 ") {
			continue
		}
		if below, err := filepath.Rel(fields[3], path); err == nil && filepath.IsLocal(below) {
			return filepath.Join(root, fields[4], below)
		}
	}
	return ""
}

// open makes a group for a process that is about to be started, and opens it. It returns nil if there can be none.
func (g *groups) open() *os.File {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dir == "" {
		return nil
	}
	g.removeEnded()
	dir, err := os.MkdirTemp(g.dir, g.prefix)
	if err != nil {
		g.dir = "" // it may not be written to
		return nil
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		_ = os.Remove(dir)
		return nil
	}
	return f
}

// end kills everything in a group. The group is removed as soon as it is empty.
func (g *groups) end(f *os.File) {
	endGroup(f.Name())
	_ = f.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = append(g.ended, f.Name())
	g.removeEnded()
}

// close removes the groups that are left, as far as their processes are gone.
func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeEnded()
}

func (g *groups) removeEnded() {
	left := g.ended[:0]
	for _, dir := range g.ended {
		if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
			left = append(left, dir)
		}
	}
	g.ended = left
}

// endGroup kills all processes of a group. Kernels before 5.14 cannot do it in one step, so there each is killed, for
// as long as any is found.
func endGroup(dir string) {
	if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	for range killRounds {
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		members := strings.Fields(string(list))
		if err != nil || len(members) == 0 {
			return
		}
		for _, member := range members {
			if pid, err := strconv.Atoi(member); err == nil && pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
			}
		}
	}
}
