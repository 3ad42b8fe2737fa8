package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rlhost/rlhost/"

// importPolicy says which of our packages each package may import. It is a statement of policy: an edge that is not
// here is a question of structure, not of this list. Tests may import more.
const importPolicy = `
hostabi:
hostabi/native:          hostabi
hostabi/internal/abigen: hostabi

core/shm:
core/stat:
core/files:
core/table:
core/ipc:
core/internal/fifo:      hostabi core/shm
core/internal/fifo/fifotest: core/internal/fifo core/shm hostabi
core/ring:               hostabi core/internal/fifo core/shm
core/queue:              hostabi core/internal/fifo core/shm
core/arena:              hostabi core/shm
core/loop:               hostabi
core/bus:                hostabi core/loop core/stat
core/link:               hostabi core/arena core/loop
core/trajectory:         hostabi hostabi/native core/arena
core/env:                hostabi core/arena core/trajectory
core/component:          core/table hostabi core/arena core/bus core/loop core/trajectory core/env core/stat
core/control:            hostabi core/ipc core/loop

gpu/policy:              hostabi core/component core/trajectory
gpu/policy/policytest:   hostabi core/trajectory gpu/policy gpu/ppo
gpu/ppo:                 core/trajectory gpu/policy
gpu/cpu:                 core/trajectory gpu/policy gpu/ppo gpu/cpu/internal/kern
gpu/cpu/internal/kern:
gpu/gorgonia:            gpu/policy gpu/ppo

plugins/wasm:            core/table hostabi core/files core/trajectory core/env plugins/wasm/internal/meter
plugins/wasm/internal/meter: hostabi
plugins/wasm/internal/asm:
plugins/plugintest:      hostabi core/shm core/arena core/bus core/component core/loop core/trajectory core/env core/stat
plugins/rollout:         hostabi core/shm core/arena core/bus core/component core/loop core/trajectory core/env core/stat
plugins/batcher:         hostabi core/arena core/bus core/component core/loop core/trajectory core/env core/stat
plugins/inference:       hostabi core/arena core/bus core/component core/loop core/trajectory core/env core/stat gpu/policy
plugins/learner:         hostabi core/arena core/bus core/component core/loop core/trajectory core/stat gpu/policy gpu/ppo
plugins/evaluation:      hostabi core/trajectory core/env gpu/policy
plugins/envcheck:        hostabi core/trajectory core/env
plugins/runner:          hostabi core/arena core/bus core/component core/loop core/trajectory core/env core/stat

plugins/objects:         core/component core/ipc core/shm plugins/objects/store plugins/objects/wire
plugins/objects/store:   hostabi core/shm
plugins/objects/wire:    plugins/objects/store

plugins/process/spawn:   hostabi hostabi/native core/shm core/ring core/link
plugins/process/proxy:   hostabi hostabi/native core/arena core/loop core/bus core/link core/trajectory core/component core/stat plugins/process/spawn
plugins/process/worker:  hostabi hostabi/native core/shm core/trajectory core/env plugins/process/spawn
plugins/process/internal/rig: hostabi/native

pipeline/graph:          core/table hostabi core/bus core/component core/env core/files core/stat
pipeline/graph/graphtest: core/table hostabi core/component core/env core/trajectory pipeline/graph
pipeline:                core/table hostabi core/arena core/bus core/component core/control core/env core/loop core/stat core/trajectory pipeline/graph
pipeline/runs:           hostabi core/component core/files
pipeline/session:        hostabi core/arena core/component core/control core/files core/trajectory core/env core/stat gpu/policy pipeline pipeline/graph pipeline/runs
pipeline/session:        plugins/evaluation plugins/envcheck plugins/learner

sdk:                     hostabi
sdk/wasm:                hostabi sdk
sdk/sdktest:             hostabi sdk
sdk/process:             core/table hostabi core/shm core/ring core/arena core/loop core/bus core/link core/trajectory core/env core/component core/stat
sdk/process:             hostabi/native sdk/process/rpc
sdk/process/rpc:
sdk/c/native:
sdk/c/native/ctest:
sdk/python:
sdk/objects:             hostabi core/shm plugins/objects/store plugins/objects/wire
examples/demos:
examples/plugins:
examples/plugins/*:      hostabi sdk sdk/wasm examples/plugins/*
examples/plugins/process-go: hostabi core/bus core/component core/trajectory core/env core/stat sdk/process
examples/plugins/gorgonia-learner: hostabi core/component core/trajectory core/env gpu/gorgonia gpu/policy plugins/inference plugins/learner sdk/process

bench/emulate:
bench/learn:
bench/learn/scaled:      sdk sdk/wasm examples/plugins/*
bench/objects:
bench/objects/server:    plugins/objects
bench/ring:              hostabi core/queue core/ring core/shm
bench/swap:              core/control

plugins/builtin:         core/table hostabi hostabi/native core/component core/env pipeline/graph examples/plugins gpu/policy gpu/cpu
plugins/builtin:         plugins/rollout plugins/batcher plugins/inference plugins/learner plugins/runner plugins/objects plugins/wasm plugins/process/*

cmd/rlhost:              hostabi core/component core/table core/files core/trajectory core/env pipeline pipeline/graph pipeline/runs examples/plugins examples/plugins/* gpu/policy
cmd/rlhost:              plugins/builtin plugins/learner plugins/evaluation plugins/envcheck plugins/runner plugins/wasm
cmd/rlhost:              plugins/process/* plugins/objects plugins/objects/store sdk/process hostabi/native
cmd/rlhost:              core/control pipeline/session

internal/testkit:        hostabi
`

// doors names the one place where each library from elsewhere may be imported.
const doors = `
golang.org/x/sys/unix:          core/shm plugins/wasm plugins/process/spawn plugins/process/proxy plugins/process/worker sdk/process pipeline/runs bench/emulate
golang.org/x/sys/cpu:           gpu/cpu gpu/cpu/internal/kern plugins/wasm
golang.org/x/term:              cmd/rlhost
github.com/tetratelabs/wazero:  plugins/wasm
github.com/ianlancetaylor/demangle: plugins/wasm
github.com/BurntSushi/toml:     pipeline/graph
github.com/alecthomas/kong:     cmd/rlhost
github.com/hashicorp:           plugins/process/spawn plugins/process/internal/rig
google.golang.org:              plugins/process/spawn plugins/process/internal/rig sdk/process/rpc
golang.org/x/net/http2:         sdk/process/rpc
gorgonia.org:                   gpu/gorgonia examples/plugins/gorgonia-learner
gonum.org:                      gpu/gorgonia
github.com/chewxy:              gpu/gorgonia
`

// Limits on size.
const (
	maxFileLines     = 500
	maxFunctionLines = 60
)

// source is one parsed file.
type source struct {
	path, dir string // from the root, with slashes
	test      bool
	generated bool
	lines     int
	file      *ast.File
	set       *token.FileSet
}

func TestShape_ImportsFollowThePolicy(t *testing.T) {
	t.Parallel()
	allowed, doorways := policyRows(importPolicy), policyRows(doors)
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		may, listed := lookUp(allowed, s.dir)
		if !listed {
			t.Errorf("%s: package %s is not in the import policy", s.path, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if ours, ok := strings.CutPrefix(name, module); ok {
				if !matches(may, ours) {
					t.Errorf("%s imports %s, which the policy does not allow", s.path, ours)
				}
				continue
			}
			if strings.Contains(strings.Split(name, "/")[0], ".") && !throughDoor(doorways, name, s.dir) {
				t.Errorf("%s imports %s: this is not its door", s.path, name)
			}
		}
	}
}

func TestShape_UnsafeStandsInItsFiles(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			if spec.Path.Value == `"unsafe"` && !s.test && !strings.HasSuffix(s.path, "_unsafe.go") && !isGuest(s.dir) {
				t.Errorf("%s imports unsafe: only files ending in _unsafe.go may", s.path)
			}
		}
	}
}

func TestShape_PackagesHaveOneComment(t *testing.T) {
	t.Parallel()
	comments := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		comments[s.dir] += 0
		if s.file.Doc != nil {
			comments[s.dir]++
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("package %s has %d package comments, want 1", dir, n)
		}
	}
}

func TestShape_FilesAndFunctionsFitAScreen(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		if s.lines > maxFileLines {
			t.Errorf("%s has %d lines, at most %d", s.path, s.lines, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || s.test {
				continue
			}
			if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, at most %d", s.path, f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestShape_NoInitAndNoNamesWithoutMeaning(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		base := strings.TrimSuffix(path.Base(s.path), ".go")
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "misc", "interfaces"}, base) {
			t.Errorf("%s: the name says nothing of what is in it", s.path)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !isGuest(s.dir) {
				t.Errorf("%s: has an init function", s.path)
			}
		}
	}
	if found, _ := filepath.Glob("../../core/*.go"); len(found) > 0 {
		t.Errorf("core/ holds Go files: %v; there is no package core", found)
	}
}

// isGuest reports whether a package is the source of a guest: a reactor has no main, so it registers in init, and
// its memory is the host's to look at.
func isGuest(dir string) bool {
	return strings.HasPrefix(dir, "examples/plugins/") || dir == "bench/learn/scaled"
}

// sources parses every Go file of the module whatever its build constraints.
func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	root := "../.."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(root, name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		s, err := parse(root, name)
		found = append(found, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// skipped reports whether a folder is not part of the module's own packages.
func skipped(root, name, base string) bool {
	if name == root {
		return false
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil || base == "testdata" || base == "runs" || base == "target" || strings.HasPrefix(base, ".")
}

func parse(root, name string) (source, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ParseComments)
	if err != nil {
		return source{}, fmt.Errorf("%s: %w", name, err)
	}
	relative, err := filepath.Rel(root, name)
	relative = filepath.ToSlash(relative)
	return source{
		path: relative, dir: path.Dir(relative), test: strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(file), lines: strings.Count(string(src), "\n"), file: file, set: set,
	}, err
}

// policyRows reads "name: word word" lines; lines of one name add up.
func policyRows(text string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		name, words, ok := strings.Cut(line, ":")
		if ok {
			rows[strings.TrimSpace(name)] = append(rows[strings.TrimSpace(name)], strings.Fields(words)...)
		}
	}
	return rows
}

func lookUp(rows map[string][]string, dir string) ([]string, bool) {
	if row, ok := rows[dir]; ok {
		return row, true
	}
	for name, row := range rows {
		if prefix, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(dir, prefix) {
			return row, true
		}
	}
	return nil, false
}

func matches(allowed []string, name string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		prefix, wild := strings.CutSuffix(a, "*")
		return a == name || wild && strings.HasPrefix(name, prefix)
	})
}

func throughDoor(doors map[string][]string, name, dir string) bool {
	for door, dirs := range doors {
		if name == door || strings.HasPrefix(name, door+"/") || strings.HasPrefix(name, door) && strings.Contains(door, ".org") {
			return slices.Contains(dirs, dir)
		}
	}
	return false
}
