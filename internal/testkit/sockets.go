package testkit

import (
	"os"
	"testing"
)

// Sockets gives the test a SocketFolder of its own, XDG_RUNTIME_DIR.
func Sockets(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", SocketFolder(t))
}

// SocketFolder returns a folder whose path is short: T.TempDir has the test's name in it, which can be too long for a socket, and programs then take
// the folder of all of this user's programs.
func SocketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlhost")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
