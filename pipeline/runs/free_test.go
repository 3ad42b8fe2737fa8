package runs

import (
	"path/filepath"
	"testing"
)

// A folder that is still to be made has the room of the place where it will be; of what is no folder nothing is known.
func TestFree_OfFoldersThatAreNotThereYet(t *testing.T) {
	dir := t.TempDir()
	if Free(dir) == 0 {
		t.Error("there is no room in a temporary folder")
	}
	if Free(filepath.Join(dir, "runs", "cartpole")) == 0 {
		t.Error("there is no room in a folder that will be made")
	}
	if n := Free("/proc/self/exe/runs"); n != 0 {
		t.Errorf("there are %d bytes of room in a file", n)
	}
}
