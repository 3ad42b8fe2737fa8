package testkit

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Run runs the tests of a package, for TestMain, and returns the exit status. It fails them when a goroutine of this project is left behind.
func Run(m *testing.M) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	left := ""
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); runtime.Gosched() {
		if left = goroutines(); left == "" {
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
	return 1
}

// goroutines returns the stacks of this project's goroutines, without TestMain's.
func goroutines() (text string) {
	stacks := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(g, "rlhost/") && !strings.Contains(g, "TestMain") {
			text += g + "\n\n"
		}
	}
	return text
}
