package testkit

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"
)

// patience is how long tests wait for a condition before they fail. It is no bound on how long it may take.
const patience = time.Minute

// Until waits until ok holds. If it never does, the test fails with what and the state, printed then.
func Until(t testing.TB, what string, ok func() bool, state ...any) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s\n%s", patience, what, fmt.Sprintln(state...))
		}
	}
}

// Buffer is a bytes.Buffer that may be read while several goroutines write it.
type Buffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write appends to the buffer; it never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

// String returns all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
