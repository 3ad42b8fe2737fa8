// Build builds the example guests, each by the line of its row in the table of package plugins, where its compiler is here:
//
//	go run ./examples/plugins/build            all of them
//	go run ./examples/plugins/build FOLDER…    the guests of some folders, such as cartpole-c
//
// and the module that computes exported policies, whose folder is ../../pipeline/export/interpreter.
// It writes a record next to each committed module, of its compiler and sources; a test builds the module again and compares.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rlhost/rlhost/examples/plugins"
)

func main() {
	folders, failed := os.Args[1:], false
	for _, g := range append(plugins.Guests(), plugins.Interpreter()) {
		if len(folders) > 0 && !slices.Contains(folders, g.Folder()) {
			continue
		}
		err := build(g)
		if err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
		}
		failed = failed || err != nil && (len(folders) > 0 || !errors.Is(err, plugins.ErrNoCompiler))
	}
	if failed {
		os.Exit(1)
	}
}

// build builds a guest next to its sources.
func build(g plugins.Guest) error {
	module, err := g.Path()
	if err != nil {
		return err
	}
	if err := g.Build(module); err != nil {
		return err
	}
	if !g.Committed {
		return nil
	}
	record, err := g.Record()
	if err != nil {
		return err
	}
	path, err := g.RecordPath()
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(record), 0o644)
}
