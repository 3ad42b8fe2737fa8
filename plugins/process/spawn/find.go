package spawn

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// componentKey is the environment variable that names the component of a process.
const componentKey = "RLHOST_COMPONENT"

// Found is a process of a component, as anybody on the machine can find it.
type Found struct {
	Component string
	PID       int
}

// Find returns the processes that a running host has started, in the order of their numbers. Only the user that
// they run as can see them.
func Find(host int) ([]Found, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || numberOf(dir, "PPid") != host {
			continue
		}
		if name, ok := variableOf(dir, componentKey); ok {
			list = append(list, Found{name, pid})
		}
	}
	return list, nil
}

// numberOf returns a number in the status of the process of a folder in /proc, such as that of its parent; 0 if the
// process is gone.
func numberOf(dir, field string) int {
	data, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "\n"+field+":")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.Atoi(strings.TrimSpace(line))
	return n
}

// variableOf returns a variable in the environment of the process of a folder in /proc, if it has it. A process that has ended has none.
func variableOf(dir, key string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return "", false
	}
	for variable := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(key+"=")); ok {
			return string(value), true
		}
	}
	return "", false
}
