package shape

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShape_NothingBuiltIsCommitted: no file that .gitignore names is in the repository, except the guests' modules, which
// are committed so that a first run needs no compiler.
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

var pageName = regexp.MustCompile(`docs/[\w/-]+\.md`)

// TestShape_PagesThatSourcesNameExist: a comment or a message that sends a reader to docs/ names a page that is there.
func TestShape_PagesThatSourcesNameExist(t *testing.T) {
	for _, s := range sources(t) {
		text, err := os.ReadFile(filepath.Join("../..", s.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pageName.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join("../..", page)); err != nil && !s.test {
				t.Errorf("%s names %s, which is not there", s.path, page)
			}
		}
	}
}
