package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost"
	"github.com/rlhost/rlhost/cmd/rlhost/project"
)

type doctorCommand struct {
	Lang string `name:"lang" placeholder:"LANGUAGE" help:"c, cpp, rust, go, zig, as or python; default all."`
}

// Help says what is tried.
func (c *doctorCommand) Help() string {
	return `For each language: the compiler that works here, its version, and how long it takes to build the example of rlhost new; or the one line
that installs what is missing. What would ask a registry for packages (as, python) is built only where --lang names it.

With --lang the exit code is 4 where the language cannot be built.`
}

// errNotReady is why doctor fails for a language that was named.
var errNotReady = errors.New("it cannot be built here")

// Run tries one language or all of them.
func (c *doctorCommand) Run(p *program) error {
	list := project.Languages()
	if c.Lang != "" {
		l, ok := project.Named(c.Lang)
		if !ok {
			return fail(exitUsage, fmt.Errorf("error[%s]: there is no language %q\n  help: --lang %s", codeFolder, c.Lang, strings.Join(project.Names(""), ", ")))
		}
		list = []project.Language{l}
	}
	rows, ready := [][]string{{"language", "compiler", "version", "state"}}, true
	for _, l := range list {
		row, ok, err := diagnose(&l, c.Lang != "")
		if err != nil {
			return err
		}
		rows, ready = append(rows, row), ready && ok
	}
	if err := p.forResults().Table(rows); err != nil {
		return err
	}
	if c.Lang != "" && !ready {
		return fail(exitCheck, errNotReady)
	}
	return nil
}

// diagnose returns a language's row, and whether it can be built.
func diagnose(l *project.Language, named bool) (row []string, ok bool, err error) {
	compiler, err := l.Find()
	if err != nil {
		return nil, false, err
	}
	if compiler == nil {
		return []string{l.Name, "none works", "", "install: " + l.Install}, false, nil
	}
	row = []string{l.Name, compiler.CC, compiler.VersionHere()}
	if compiler.Once != "" && !named {
		return append(row, "not built: rlhost doctor --lang "+l.Name), true, nil
	}
	dir, err := os.MkdirTemp("", "rlhost-doctor")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(dir)
	made, err := project.Write(project.Options{Sources: rlhost.Sources(), Kind: project.Env, Name: "example", Dir: filepath.Join(dir, "example"), Language: l.Name})
	if err != nil {
		return nil, false, err
	}
	begin := time.Now()
	if out, err := runScript(made.Dir, "build.sh"); err != nil {
		return append(row, fmt.Sprintf("error[%s]: %v: %s; install: %s", codeNotBuilt, err, lastOf(out), l.Install)), false, nil
	}
	return append(row, fmt.Sprintf("builds, %.1f s", time.Since(begin).Seconds())), true, nil
}

// lastOf is the last line that a build printed.
func lastOf(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
