package testkit

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var codeSpan = regexp.MustCompile("(?s)```.*?\n```|`[^`\n]+`")

// Documented checks that each name stands on a page of docs/, in code: a row of a registry has its row there.
func Documented(t testing.TB, page string, names ...string) {
	t.Helper()
	root := "."
	for _, err := os.Stat("go.mod"); err != nil && len(root) < 100; _, err = os.Stat(filepath.Join(root, "go.mod")) {
		root = filepath.Join("..", root)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	spans := codeSpan.FindAll(text, -1)
	for _, name := range names {
		word := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(name) + `(\W|$)`)
		found := false
		for _, span := range spans {
			found = found || word.Match(span)
		}
		if !found {
			t.Errorf("docs/%s does not tell of %s", page, name)
		}
	}
}
