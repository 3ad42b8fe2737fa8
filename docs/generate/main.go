// Generate writes the pages of the documentation that the sources determine.
//
//	go run ./docs/generate
//
// A page is written only where it differs. Tests fail while a page is not what its sources make of it.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// page is a page that is generated.
type page struct {
	path string // from the root of the repository
	text func(root string) (string, error)
}

// pages are all generated pages.
var pages = []page{
	{"docs/reference/cli.md", commandLine},
	{"docs/reference/codes.md", codes},
	{"docs/reference/metrics.md", metricsPage},
	{"docs/reference/pipeline.md", pipelinePage},
	{"docs/reference/environments.md", environmentsPage},
	{"docs/reference/component-abi.md", withTables("docs/reference/component-abi.md")},
	{"docs/reference/env-abi.md", withTables("docs/reference/env-abi.md")},
	{"docs/reference/dataset.md", withTables("docs/reference/dataset.md")},
	{"docs/reference/components.md", withTables("docs/reference/components.md")},
	{"docs/index.md", index}, // last: it reads the others
}

func main() {
	if err := generate("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate writes all pages into the repository at root.
func generate(root string) error {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return fmt.Errorf("run this at the root of the repository: %w", err)
	}
	for _, p := range pages {
		text, err := p.text(root)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		path := filepath.Join(root, p.path)
		old, err := os.ReadFile(path)
		if err == nil && string(old) == text {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Println(p.path)
	}
	return nil
}
