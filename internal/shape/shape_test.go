package shape

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rlhost/rlhost/"

// imports says which of our packages each package may import. "/..." means a package and all below it, "*" one part of a path, "." the
// package's own folder (the first two parts of its path) and all in it, "rlhost" the package at the root. The row with the longest text that
// fits counts. An edge that is not here is a question of structure, not of this list. Tests may import more. "any" is for programs, which
// nothing imports.
const imports = `
rlhost:                 core/files pipeline/graph pipeline/players pipeline/runs pipeline/session plugins/author plugins/builtin plugins/evaluation sdk/component
hostabi/...:            hostabi/...
core/...:               hostabi/... core/...
gpu/policy/...:         hostabi core/... gpu/policy/...
gpu/policy/policytest:  hostabi core/... gpu/policy/... gpu/ppo
gpu/ppo/...:            hostabi/... core/... gpu/policy/... gpu/ppo/...
gpu/*/...:              hostabi core/... gpu/policy/... gpu/ppo/... .
gpu/cuda/driver:
gpu/cuda/kernels:       gpu/cuda/driver
gpu/cuda/kernels/build: gpu/cuda/kernels
gpu/cuda/ptx/...:       gpu/cuda/ptx/...
gpu/cuda/fake:          gpu/cuda/ptx
plugins/*/...:          hostabi/... core/... gpu/policy/... gpu/ppo/... .
plugins/wasm:           hostabi core/... plugins/wasm/engine plugins/wasm/guest plugins/wasm/module plugins/wasm/internal/...
plugins/wasm/component: hostabi/... core/... plugins/wasm plugins/wasm/engine plugins/wasm/guest plugins/wasm/module plugins/wasm/internal/...
plugins/wasm/guest:     hostabi core/... plugins/wasm/engine plugins/wasm/module plugins/wasm/internal/...
plugins/wasm/engine:    core/env plugins/wasm/internal/...
plugins/wasm/module:    hostabi core/... plugins/wasm/internal/...
plugins/wasm/internal/...: hostabi/... core/... plugins/wasm/internal/...
plugins/componentcheck: hostabi core/... plugins/envcheck
plugins/plugintest:     hostabi/... core/... plugins/plugintest internal/testkit
plugins/process/internal/...: hostabi/... core/... plugins/process/... internal/testkit
plugins/channel:        hostabi core/... plugins/items
plugins/objects:        hostabi core/... plugins/items plugins/objects/store
plugins/author:         hostabi/... core/... sdk/component
plugins/author/authortest: hostabi/... core/... plugins/plugintest sdk/sdktest/scribe
plugins/builtin:        any
docs/site:
pipeline/search:        core/table
pipeline/graph/...:     hostabi core/... gpu/policy/... pipeline/search pipeline/graph/...
pipeline/loading:       hostabi core/... pipeline/graph
pipeline/fit:           hostabi core/... pipeline/graph
pipeline/loops:         hostabi core/...
pipeline/overrides:     pipeline/graph
pipeline/diagnosis:     hostabi core/...
pipeline:               hostabi core/... gpu/policy/... pipeline/graph pipeline/loading pipeline/fit pipeline/loops pipeline/diagnosis pipeline/overrides
pipeline/runs:          hostabi core/...
pipeline/bench:         hostabi core/... pipeline pipeline/graph
pipeline/seeds:         hostabi core/... pipeline/runs
pipeline/trials:        hostabi core/... pipeline/graph pipeline/runs pipeline/search pipeline/seeds
pipeline/otlp:          core/files core/metrics core/trace
pipeline/curves:        core/files core/table pipeline/seeds
pipeline/video:
pipeline/pictures:
pipeline/play:          hostabi core/... plugins/evaluation
pipeline/play/web:      pipeline/play pipeline/loopback
pipeline/loopback:
pipeline/placement:     pipeline/graph
pipeline/replay:        hostabi core/... pipeline/graph pipeline/loading pipeline/play pipeline/runs
pipeline/manifest:      core/control/text pipeline/placement
pipeline/member:        hostabi/... core/... pipeline pipeline/graph pipeline/placement
pipeline/compare:       core/... pipeline/graph pipeline/runs pipeline/seeds
pipeline/players:       hostabi core/... gpu/policy/... pipeline/graph pipeline/runs plugins/evaluation
pipeline/export:        core/... gpu/policy/... pipeline/runs
pipeline/page:          core/... sdk/js
pipeline/dev:           core/... pipeline/graph
pipeline/dash:          core/... pipeline/compare pipeline/curves pipeline/graph pipeline/loopback pipeline/play/web pipeline/runs
pipeline/session:       hostabi core/... gpu/policy/... gpu/ppo pipeline/... plugins/evaluation plugins/envcheck
sdk/...:                hostabi sdk/...
sdk/component:          hostabi sdk
sdk/process/...:        hostabi/... core/... plugins/author sdk/component sdk/process/...
sdk/objects:            hostabi core/shm core/objects/wire
examples/plugins/...:   hostabi sdk/... examples/plugins/...
examples/plugins/gorgonia-learner: hostabi core/... gpu/gorgonia gpu/policy plugins/inference plugins/learner sdk/process
examples/...:
bench/...:              any
internal/...:           any
docs/generate:          any
cmd/...:                any
`

// order says which way imports go within core and pipeline, lowest first: a package imports packages in lines before its own.
const order = `
core/names
core/shm core/place core/stat core/files core/table core/ipc core/objects/wire
core/internal/...
core/ring core/arena core/loop
core/bus core/link/...
core/trajectory
core/env core/recording core/trace
core/tape
core/component core/control
pipeline/search pipeline/otlp
pipeline/graph/...
pipeline/loading pipeline/fit pipeline/loops pipeline/diagnosis pipeline/placement
pipeline pipeline/runs
pipeline/seeds pipeline/export pipeline/page pipeline/replay
pipeline/compare pipeline/curves pipeline/trials pipeline/manifest
pipeline/session pipeline/bench pipeline/dash pipeline/dev
`

// doors names the one place where each library from elsewhere may be imported.
const doors = `
golang.org/x/sys/unix:          core/shm core/place core/ipc plugins/wasm/engine plugins/wasm/guest plugins/wasm/internal/codecache plugins/wasm/internal/linear plugins/process/spawn plugins/process/proxy plugins/process/worker sdk/process pipeline/runs bench/emulate
golang.org/x/sys/cpu:           gpu/cpu gpu/cpu/internal/kern plugins/wasm/internal/codecache
golang.org/x/term:              cmd/rlhost
github.com/nats-io:             core/cluster
github.com/tetratelabs/wazero:  plugins/wasm/engine plugins/wasm/guest plugins/wasm/internal/linear
github.com/ianlancetaylor/demangle: plugins/wasm/module
github.com/BurntSushi/toml:     pipeline/graph
github.com/alecthomas/kong:     cmd/rlhost
github.com/willabides/kongplete: cmd/rlhost
github.com/posener/complete:    cmd/rlhost
charm.land/bubbletea:           cmd/rlhost
github.com/charmbracelet/x/ansi: cmd/rlhost
github.com/hashicorp:           plugins/process/spawn plugins/process/internal/rig
google.golang.org:              plugins/process/spawn plugins/process/internal/rig sdk/process/rpc
google.golang.org/protobuf/encoding/protowire: sdk/process/rpc plugins/runner/tensorboard pipeline/export cmd/rlhost/profile
golang.org/x/net/netutil:       plugins/runner/prometheus pipeline/loopback
github.com/prometheus:          plugins/runner/prometheus
go.opentelemetry.io:
gorgonia.org:                   gpu/gorgonia examples/plugins/gorgonia-learner
gonum.org:                      gpu/gorgonia
golang.org/x/image:             pipeline/curves
github.com/chewxy:              gpu/gorgonia
github.com/fsnotify:            pipeline/dev
github.com/chromedp:            internal/testkit/browser
github.com/ebitengine/purego:   gpu/cuda/driver gpu/cuda/fake
`

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
	rows, doorways := policyRows(imports), policyRows(doors)
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		may, listed := lookUp(rows, s.dir)
		if !listed {
			t.Errorf("%s: package %s is not in the import policy", s.path, s.dir)
			continue
		}
		for _, ours := range s.imports() {
			if !slices.ContainsFunc(may, func(pattern string) bool { return fits(pattern, ours, s.dir) }) {
				t.Errorf("%s imports %s, which the policy does not allow", s.path, ours)
			}
			if runsBack(s.dir, ours) {
				t.Errorf("%s imports %s, which stands above it", s.path, ours)
			}
		}
		for _, spec := range s.file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			_, ours := folderOf(name)
			if strings.Contains(strings.Split(name, "/")[0], ".") && !ours && !throughDoor(doorways, name, s.dir) {
				t.Errorf("%s imports %s: this is not its door", s.path, name)
			}
		}
	}
}

// What says whether things fit together says the same of the same things each time.
func TestShape_FitReadsNothing(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			first, _, _ := strings.Cut(strings.Trim(spec.Path.Value, `"`), "/")
			if s.dir == "pipeline/fit" && !s.test && slices.Contains([]string{"os", "io", "net", "time", "syscall", "runtime"}, first) {
				t.Errorf("%s imports %s: it is to read no file, no clock and no process", s.path, spec.Path.Value)
			}
		}
	}
}

// imports returns the packages of ours that a file imports, by their folders.
func (s *source) imports() (list []string) {
	for _, spec := range s.file.Imports {
		if dir, ours := folderOf(strings.Trim(spec.Path.Value, `"`)); ours {
			list = append(list, dir)
		}
	}
	return list
}

// folderOf returns the folder of a package of ours; that at the root is rlhost.
func folderOf(importPath string) (dir string, ours bool) {
	dir, ours = strings.CutPrefix(importPath+"/", module)
	return cmp.Or(strings.TrimSuffix(dir, "/"), path.Base(module)), ours
}

// runsBack reports whether both packages are in order, and the imported one not in an earlier line.
func runsBack(from, to string) bool {
	line := func(name string) int {
		number := 0
		for text := range strings.Lines(order) {
			number++
			if slices.ContainsFunc(strings.Fields(text), func(pattern string) bool { return fits(pattern, name, "") }) {
				return number
			}
		}
		return 0
	}
	a, b := line(from), line(to)
	return a != 0 && b != 0 && a <= b && !strings.HasPrefix(to, from+"/") && !strings.HasPrefix(from, to+"/")
}

// Sizes are reported (make lint prints them), and nothing is split, joined or embedded to satisfy one.
func TestShape_TellsTheLargest(t *testing.T) {
	t.Parallel()
	packages, files, functions, methods := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.test || s.generated {
			continue
		}
		packages[s.dir] += s.lines
		files[s.path] = s.lines
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := s.dir + "." + f.Name.Name
			if f.Recv != nil {
				name = s.dir + "." + receiver(f)
				methods[name]++
				name += "." + f.Name.Name
			}
			functions[name] = s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
		}
	}
	tellLargest(t, "lines of packages", packages)
	tellLargest(t, "lines of files", files)
	tellLargest(t, "lines of functions", functions)
	tellLargest(t, "methods of types", methods)
}

func tellLargest(t *testing.T, what string, sizes map[string]int) {
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b)) })
	text := what + ":"
	for _, name := range names[:10] {
		text += fmt.Sprintf("\n\t%d %s", sizes[name], name)
	}
	t.Log(text)
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	if pointer, ok := t.(*ast.StarExpr); ok {
		t = pointer.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	return t.(*ast.Ident).Name
}

// Every optional interface of a component or an environment has a name and a contract where it is declared.
// errors.Join's is the one interface of the standard library without a name.
func TestShape_InterfacesHaveNames(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		named := map[*ast.InterfaceType]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok {
					named[i] = true
				}
			case *ast.InterfaceType:
				for _, m := range n.Methods.List {
					if _, method := m.Type.(*ast.FuncType); method && !named[n] && m.Names[0].IsExported() && m.Names[0].Name != "Unwrap" {
						t.Errorf("%v: an interface without a name", s.set.Position(n.Pos()))
					}
				}
			}
			return true
		})
	}
}

func TestShape_UnsafeIsInItsFiles(t *testing.T) {
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
	return err == nil || base == "testdata" || name == filepath.Join(root, "runs") || base == "target" || strings.HasPrefix(base, ".")
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
	dir := path.Dir(relative)
	if dir == "." {
		dir = path.Base(module)
	}
	return source{
		path: relative, dir: dir, test: strings.HasSuffix(name, "_test.go"),
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

// lookUp returns the row of the longest pattern that a package fits.
func lookUp(rows map[string][]string, dir string) (row []string, ok bool) {
	longest := ""
	for pattern := range rows {
		if len(pattern) > len(longest) && fits(pattern, dir, "") {
			longest = pattern
		}
	}
	row, ok = rows[longest]
	return row, ok
}

// fits reports whether a package's path matches a pattern; see imports.
func fits(pattern, name, importer string) bool {
	switch {
	case pattern == "any":
		return true
	case pattern == ".":
		parts := strings.SplitN(importer, "/", 3)
		return len(parts) > 1 && fits(parts[0]+"/"+parts[1]+"/...", name, "")
	}
	want, got := strings.Split(pattern, "/"), strings.Split(name, "/")
	for i, part := range want {
		if part == "..." {
			return true
		}
		if i >= len(got) || part != "*" && part != got[i] {
			return false
		}
	}
	return len(want) == len(got)
}

// throughDoor reports whether a package may import a library: the door with the longest name counts.
func throughDoor(doors map[string][]string, name, dir string) bool {
	longest := ""
	for door := range doors {
		if (name == door || strings.HasPrefix(name, door)) && len(door) > len(longest) {
			longest = door
		}
	}
	return slices.Contains(doors[longest], dir)
}
