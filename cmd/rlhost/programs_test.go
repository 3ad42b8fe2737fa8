package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// builds are the example programs that several tests run, each built once.
type builds struct {
	mu   sync.Mutex
	dir  string // made with the first
	done map[string]error
}

// examples has the builds of this process.
var examples builds

// suite is all tests of the package.
type suite struct{ *testing.M }

// Run runs them, and tidies up.
func (s suite) Run() int {
	defer func() { _ = os.RemoveAll(examples.dir) }() // remains are among temporary files
	return s.M.Run()
}

// errNoCompiler means that this machine cannot build C.
var errNoCompiler = errors.New("no C compiler: apt-get install gcc libnghttp2-dev")

// example builds one of the programs that trajectories pass through, in Go or in C, and puts it into the folder.
func (w *workshop) example(language, name string) {
	w.t.Helper()
	path, err := examples.build(language)
	if errors.Is(err, errNoCompiler) {
		w.t.Skip(err)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.copy(name, path)
}

// build returns the path of a program, and builds it if needed.
func (b *builds) build(language string) (path string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = map[string]error{}
		if b.dir, err = os.MkdirTemp("", "rlhost-examples-"); err != nil {
			return "", err
		}
	}
	path = filepath.Join(b.dir, language)
	err, built := b.done[language]
	if !built {
		err = buildExample(language, path)
		b.done[language] = err
	}
	return path, err
}

func buildExample(language, path string) error {
	command := []string{"go", "build", "-o", path, "./examples/plugins/process-go"}
	if language == "C" {
		cc, err := exec.LookPath("cc")
		if err != nil {
			return errNoCompiler
		}
		sources, err := filepath.Glob("../../sdk/c/native/*.c")
		if err != nil || len(sources) == 0 {
			return fmt.Errorf("%d sources: %w", len(sources), err)
		}
		command = []string{cc, "-O1", "-I", "sdk/c/native", "examples/plugins/process-c/return_tap.c", "-o", path}
		for _, s := range sources {
			command = append(command, strings.TrimPrefix(s, "../../"))
		}
		command = append(command, "-lnghttp2", "-lpthread")
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = "../.."
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", c.Args, err, out)
	}
	return nil
}
