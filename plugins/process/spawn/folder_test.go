package spawn

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// However long the path of the folder for temporary files is, a plugin's socket can be made below the folder of a runtime, with the
// longest names that may be chosen: a longer one makes it take another folder.
func TestMakeFolder_SocketsFitBelowIt(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "f") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	t.Setenv("XDG_RUNTIME_DIR", "")
	own := 0
	for n := len(root) + 2; n < 64; n++ {
		temp := root + "/" + strings.Repeat("d", n-len(root)-1)
		if err := os.Mkdir(temp, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", temp)
		dir, err := makeFolder("")
		if err != nil {
			t.Fatalf("TMPDIR of %d characters: %v", n, err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if filepath.Dir(dir) == temp {
			own++
		}
		// The longest number that it may get.
		dir = strings.TrimRight(dir, "0123456789") + "4294967295/plugin-dir4294967295"
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(filepath.Dir(dir)) })
		l, err := net.Listen("unix", dir+"/plugin4294967295")
		if err != nil {
			t.Fatalf("TMPDIR of %d characters: %v", n, err)
		}
		l.Close()
	}
	if own == 0 {
		t.Error("no folder lies in TMPDIR")
	}
}
