package spawn

import (
	"crypto/rand"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// markKey is the environment variable that marks one process and all that it starts, by which its descendants are
// found even if they have left its process group.
const markKey = "RLHOST_PROCESS"

// newMark returns a value of markKey that no other process has.
func newMark() string { return rand.Text() }

// killRounds bounds how often descendants are looked for: each look may miss processes that are just being started.
const killRounds = 16

// killMarked kills all processes with a mark. It sees processes of this user that have not changed their environment.
func killMarked(mark string) {
	for range killRounds {
		if killed := killMarkedOnce(mark); killed == 0 {
			return
		}
	}
}

func killMarkedOnce(mark string) (killed int) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !isMarked(dir, mark) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// The number may have become another process's since the first look; through the descriptor it cannot.
		if isMarked(dir, mark) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			killed++
		}
		_ = unix.Close(fd)
	}
	return killed
}

// isMarked reports whether the process of a folder in /proc has the mark.
func isMarked(dir, mark string) bool {
	found, ok := variableOf(dir, markKey)
	return ok && found == mark
}
