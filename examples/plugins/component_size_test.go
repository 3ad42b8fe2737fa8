package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
)

// componentSources are the files of a component by the name of its language. The main package in Go, which makes the module, is the
// same for all and does not count.
var componentSources = map[string]string{"C": "{env}.c", "Go": "{env}/*.go", "Rust": "src/*.rs"}

// An example shows how much code a component takes: repeated code belongs in the SDK.
func TestComponents_AreShortInEachLanguage(t *testing.T) {
	const most = 60
	languages := map[string]int{}
	for _, g := range plugins.Guests() {
		if !g.Component {
			continue
		}
		pattern := filepath.Join(g.Folder(), strings.ReplaceAll(componentSources[g.Language.Name], "{env}", g.Env))
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no sources: %v", pattern, err)
		}
		n := 0
		for _, file := range files {
			n += linesOfCode(t, file)
		}
		if n > most || n == 0 {
			t.Errorf("%s has %d lines, want at most %d: move what repeats into the SDK", g.Folder(), n, most)
		}
		if !g.Wrapper {
			languages[g.Env]++
		}
	}
	for env, n := range languages {
		if n != len(componentSources) {
			t.Errorf("%s is there in %d languages, want %d", env, n, len(componentSources))
		}
	}
	if len(languages) < 5 {
		t.Errorf("components %v, want 5", languages)
	}
}

// linesOfCode counts the lines of a file that are neither blank nor comments.
func linesOfCode(t *testing.T, file string) (n int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
