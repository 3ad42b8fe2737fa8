package bus_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when a test leaves a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of this project's goroutines that do not end by themselves.
func leaked() string {
	left := ""
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		left = ""
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(g, "rlhost/core/") && !strings.Contains(g, "TestMain") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
	}
	return left
}
