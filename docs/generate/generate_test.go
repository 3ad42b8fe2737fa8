package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The page of the command line is compared where the command line is, in cmd/rlhost.
func TestPages_AreAsTheirSourcesSay(t *testing.T) {
	const root = "../.."
	for _, p := range pages {
		if p.path == "docs/reference/cli.md" {
			continue
		}
		want, err := p.text(root)
		if err != nil {
			t.Errorf("%s: %v", p.path, err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(root, p.path)); err != nil || string(got) != want {
			t.Errorf("%s is not what its sources make of it: run go run ./docs/generate (%v)", p.path, err)
		}
	}
}
