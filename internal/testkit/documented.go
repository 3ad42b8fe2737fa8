package testkit

import (
	"os"
	"regexp"
	"testing"
)

var codeSpan = regexp.MustCompile("(?s)```.*?\n```|`[^`\n]+`")

// Documented checks that each name is on a page, in code: a row of a registry has its row there.
func Documented(t testing.TB, page string, names ...string) {
	t.Helper()
	text, err := os.ReadFile(page)
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
			t.Errorf("%s does not tell of %s", page, name)
		}
	}
}
