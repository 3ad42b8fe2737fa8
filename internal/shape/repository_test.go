package shape

import (
	"os/exec"
	"path"
	"strings"
	"testing"
)

// TestShape_NothingBuiltIsCommitted: what .gitignore names is not in the repository, but for the guests' modules, which are
// committed so that a first run needs no compiler.
func TestShape_NothingBuiltIsCommitted(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--ignored", "--exclude-standard")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Logf("no repository to look at: %v", err)
		return
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if path.Ext(name) != ".wasm" || strings.Contains(name, "/target/") {
			t.Errorf("%s is built and committed; run: git rm --cached %[1]s", name)
		}
	}
}
