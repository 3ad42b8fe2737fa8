package shape

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// checked is a package of ours with its types, as it is built here: without tests and without generated files.
type checked struct {
	dir   string // from the root
	set   *token.FileSet
	files map[string]*ast.File // by the name of the file
	types *types.Package
	info  types.Info
}

// packages type-checks every package of the module, once for all tests. Their imports are read from the build cache.
var packages = sync.OnceValues(func() (list []*checked, err error) {
	exports := map[string]string{}
	listed, err := goList()
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	for _, p := range listed {
		exports[p.ImportPath] = p.Export
	}
	from := importer.ForCompiler(set, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	for _, p := range listed {
		dir, ours := folderOf(p.ImportPath)
		if !ours || len(p.GoFiles) == 0 {
			continue
		}
		c, err := check(p, dir, set, from)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
})

// mustPackages is packages for a test.
func mustPackages(t *testing.T) []*checked {
	t.Helper()
	list, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func goList() (list []listed, err error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

func check(p listed, dir string, set *token.FileSet, from types.Importer) (*checked, error) {
	c := &checked{dir: dir, set: set, files: map[string]*ast.File{}, info: types.Info{Uses: map[*ast.Ident]types.Object{}}}
	var all []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if all = append(all, file); !ast.IsGenerated(file) {
			c.files[name] = file
		}
	}
	config := types.Config{Importer: from}
	var err error
	if c.types, err = config.Check(p.ImportPath, set, all, &c.info); err != nil {
		return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
	}
	return c, nil
}

// fileOf returns the name of the file that an object of the package is declared in.
func (c *checked) fileOf(o types.Object) string {
	return filepath.Base(c.set.Position(o.Pos()).Filename)
}
