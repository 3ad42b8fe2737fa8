package module

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// Limits of modules whose source sets none.
const (
	DefaultMemory        = 64 << 20
	DefaultStep          = time.Second
	DefaultInit          = 10 * time.Second
	DefaultCompile       = time.Minute
	DefaultCompileMemory = 1 << 30
	DefaultMaxFileBytes  = 32 << 20
)

// withDefaults fills in the limits that a source leaves to the runtime.
func withDefaults(s env.Source, path string) env.Source {
	s.Name = cmp.Or(s.Name, path)
	s.Memory = min(cmp.Or(s.Memory, DefaultMemory), linear.Addressable) / linear.WasmPage * linear.WasmPage
	s.Step = cmp.Or(s.Step, DefaultStep)
	s.Init = cmp.Or(s.Init, DefaultInit)
	s.Compile = cmp.Or(s.Compile, DefaultCompile)
	s.CompileMemory = cmp.Or(s.CompileMemory, DefaultCompileMemory)
	return s
}

// File is a module that was read, checked against an ABI and metered. It is not changed.
type File struct {
	Path      string
	Hash      string        // SHA-256 of the content, in hexadecimal
	Config    env.Source    // with every limit
	Args      []byte        // of environments, as the guest reads them: lines of key=value, sorted by key
	Data      *files.Folder // that it may read; nil: none
	ABI       *ABI          // of its kind
	Metered   *meter.Result // the code to compile
	MemoryMin uint64        // in bytes
	MemoryMax uint64        // as the module declares it, or addressable
	Layout    Layout
	Language  Language

	exports map[string]bool    // functions that it exports
	imports map[[2]string]bool // functions that it imports, by module and name
}

// Read reads, checks and meters a module of a kind. content is the file's; if it is nil, the file at path is read, unless it has more than
// most bytes; read is the file's content. Limits that c leaves out get their defaults; Memory is rounded down to 64 KiB. The error is a
// *table.Error.
func Read(path string, content []byte, c env.Source, a *ABI, most int64) (f *File, read []byte, err error) {
	c = withDefaults(c, path)
	if err := checkConfig(path, c, a); err != nil {
		return nil, nil, err
	}
	if content == nil {
		var fail *table.Error
		if content, fail = readFile(path, most); fail != nil {
			return nil, nil, fail
		}
	}
	m, fail := decode(path, content)
	if fail != nil {
		return nil, nil, fail
	}
	if found := check(path, m, c.Grants, a); len(found) > 0 {
		return nil, nil, found[0]
	}
	if f, err = meterFile(path, content, m, c, a); err == nil {
		f.Data, err = readData(c)
	}
	return f, content, err
}

// readData reads the folder of data, unless that has been done. It returns nil where there is none.
func readData(c env.Source) (*files.Folder, error) {
	path := c.Data
	if path == "" || c.Folder != nil {
		return c.Folder, nil
	}
	f, err := files.ReadFolder(path)
	if err == nil {
		return f, nil
	}
	why, help := words.OneLine(err.Error()), "name a folder of files and folders alone"
	if errors.Is(err, os.ErrNotExist) {
		why, help = "it does not exist", "make the folder, or correct the path"
	}
	return nil, &table.Error{Code: CodeData, Key: "data", Place: path, Reason: "cannot be granted: " + why, Help: help, Err: err}
}

// ReadChecked is Read of a module that another process has checked. Every limit of c is set.
func ReadChecked(path string, content []byte, c env.Source) (*File, error) {
	m, fail := decode(path, content)
	if fail != nil {
		return nil, fail
	}
	f, err := meterFile(path, content, m, c, abiOf(m))
	if err == nil {
		f.Data, err = readData(c)
	}
	return f, err
}

func meterFile(path string, content []byte, m *meter.Module, c env.Source, a *ABI) (*File, error) {
	a.optional(m, c.Grants)
	metered, err := m.Rewrite()
	if err != nil {
		return nil, moduleError(path, content, err)
	}
	sum, own := sha256.Sum256(content), m.Memories[0]
	f := &File{Path: path, Hash: hex.EncodeToString(sum[:]), Config: c, Args: renderArgs(c.Args), ABI: a, Metered: metered,
		MemoryMin: uint64(own.Min) * linear.WasmPage, MemoryMax: linear.Addressable, Layout: layoutOf(m, metered), Language: languageOf(content),
		exports: map[string]bool{}, imports: map[[2]string]bool{}}
	if own.HasMax {
		f.MemoryMax = min(uint64(own.Max)*linear.WasmPage, linear.Addressable)
	}
	for _, e := range m.Exports {
		f.exports[e.Name] = e.Kind == meter.KindFunction
	}
	for _, i := range m.Imports {
		f.imports[[2]string{i.Module, i.Name}] = i.Kind == meter.KindFunction
	}
	return f, nil
}

// Exports reports whether the module exports a function of that name.
func (f *File) Exports(name string) bool { return f.exports[name] }

// Imports reports whether the module imports that function.
func (f *File) Imports(module, name string) bool { return f.imports[[2]string{module, name}] }

// DataDigest identifies the data that the module may read: empty without.
func (f *File) DataDigest() string {
	if f.Data == nil {
		return ""
	}
	return f.Data.Digest
}

// Granted reports whether the module may use a capability.
func (f *File) Granted(capability string) bool { return slices.Contains(f.Config.Grants, capability) }

// Fail returns an error that names the module. code is one of the package's; the error wraps err, which may be nil.
func (f *File) Fail(code, reason, help string, err error) *table.Error {
	return &table.Error{Code: code, Place: f.Path, Reason: reason, Help: help, Err: err}
}

func readFile(path string, limit int64) ([]byte, *table.Error) {
	fail := func(code, reason, help string, err error) *table.Error {
		return &table.Error{Code: code, Place: path, Reason: reason, Help: help, Err: err}
	}
	f, err := files.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fail(CodeMissing, "does not exist", "build it first, or correct the path", err)
	}
	if errors.Is(err, files.ErrNotRegular) {
		return nil, fail(CodeMissing, "cannot be read: "+words.OneLine(err.Error()), "give a regular file", err)
	}
	if err != nil {
		return nil, fail(CodeMissing, "cannot be read: "+words.OneLine(err.Error()), "make it readable", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fail(CodeMissing, "cannot be read: "+words.OneLine(err.Error()), "give a regular file", err)
	}
	if int64(len(b)) > limit {
		return nil, fail(CodeFormat, fmt.Sprintf("is larger than %s", words.Bytes(uint64(limit))),
			"strip debug information, or raise the limit on plugin files", nil)
	}
	return b, nil
}

// checkConfig rejects unknown grants and arguments that cannot be encoded for the guest.
func checkConfig(path string, c env.Source, a *ABI) error {
	all := a.grants
	for _, g := range c.Grants {
		if !slices.Contains(all, g) {
			return &table.Error{Code: CodeImport, Place: path, Reason: fmt.Sprintf("is granted %q, which does not exist", g),
				Help: "there are " + strings.Join(all, ", ")}
		}
	}
	for key, value := range c.Args {
		if strings.ContainsAny(key, "=\n\x00") || strings.ContainsAny(value, "\n\x00") || key == "" {
			return &table.Error{Code: CodeDescription, Place: path,
				Reason: fmt.Sprintf("cannot be given the argument %q = %q", key, value),
				Help:   "use one line of text, and no = in the key", Err: hostabi.ErrSpec}
		}
	}
	return nil
}

// renderArgs writes arguments as the guest reads them: lines of key=value, sorted by key.
func renderArgs(args map[string]string) []byte {
	keys := make([]string, 0, len(args))
	for key := range args {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var b []byte
	for _, key := range keys {
		b = append(append(append(append(b, key...), '='), args[key]...), '\n')
	}
	return b
}
