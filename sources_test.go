package rlhost_test

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost"
)

// The patterns that leave tests out leave nothing else out.
func TestSources_HaveWhatAnAuthorCompiles(t *testing.T) {
	folders := map[string]bool{}
	err := fs.WalkDir(rlhost.Sources(), ".", func(name string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "examples/") {
			folders[path.Dir(name)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range folders {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			_, err := fs.Stat(rlhost.Sources(), filepath.ToSlash(file))
			if isTest := strings.HasSuffix(file, "_test.go"); isTest == (err == nil) {
				t.Errorf("%s: a test %v, %v", file, isTest, err)
			}
		}
	}
}
