package spawn

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// folderPrefix begins the names of runtimes' folders: rlhost-plugins-PID-START, where START is when the process of
// that number began, in clock ticks, which distinguishes a later process of the same number.
const folderPrefix = "rlhost-plugins-"

// A socket's path has at most 107 bytes, of which go-plugin and plugins take up to 38 below the folder: /plugin-dir and /plugin, each
// with a number of ten digits at most, which MkdirTemp and CreateTemp choose. The folder has such a number too.
const (
	maxSocket  = 107
	belowOwn   = len("/plugin-dir") + tempDigits + len("/plugin") + tempDigits
	tempDigits = 10
)

// makeFolder makes the folder for this process's sockets, which no other user can enter, and removes the folders of killed processes.
func makeFolder(parent string) (string, error) {
	started, err := startTime(os.Getpid())
	if err != nil {
		return "", fmt.Errorf("folder for sockets: %w", err)
	}
	name := folderPrefix + strconv.Itoa(os.Getpid()) + "-" + started + "-"
	if parent, err = folderParent(parent, maxSocket-belowOwn-len("/")-len(name)-tempDigits); err != nil {
		return "", err
	}
	removeOrphans(parent)
	dir, err := os.MkdirTemp(parent, name)
	if err != nil {
		return "", fmt.Errorf("folder for sockets: %w", err)
	}
	return dir, nil
}

// folderParent returns the first folder that can be written to and whose path has at most so many bytes.
func folderParent(wanted string, most int) (string, error) {
	for _, dir := range []string{wanted, os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if dir == "" {
			continue
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("folder for sockets: %w", err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			if wanted != "" {
				return "", fmt.Errorf("folder for sockets: %s is not a folder", dir)
			}
			continue
		}
		if len(dir) <= most {
			return dir, nil
		}
	}
	return "", fmt.Errorf("folder for sockets: no folder for temporary files with a path of at most %d bytes: set TMPDIR", most)
}

// removeOrphans removes folders whose process is gone. A folder that cannot be removed belongs to another user.
func removeOrphans(parent string) {
	for _, name := range orphans(parent) {
		_ = os.RemoveAll(filepath.Join(parent, name))
	}
}

// orphans returns the names of the folders in parent that belong to processes that are gone.
func orphans(parent string) (names []string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), folderPrefix)
		parts := strings.Split(rest, "-")
		if !ours || !e.IsDir() || len(parts) != 3 {
			continue
		}
		pid, err := strconv.Atoi(parts[0])
		if err != nil {
			continue
		}
		if now, err := startTime(pid); err == nil && now == parts[1] {
			continue
		}
		names = append(names, e.Name())
	}
	return names
}

// startTime returns field 22 of /proc/PID/stat. The name of the program, field 2, may contain anything.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const afterName = 3 // number of the first field after the name
	if len(fields) <= 22-afterName {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return string(fields[22-afterName]), nil
}
