package wasm

import (
	"cmp"
	"context"
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
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
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
	s.Memory = min(cmp.Or(s.Memory, DefaultMemory), addressable) / wasmPage * wasmPage
	s.Step = cmp.Or(s.Step, DefaultStep)
	s.Init = cmp.Or(s.Init, DefaultInit)
	s.Compile = cmp.Or(s.Compile, DefaultCompile)
	s.CompileMemory = cmp.Or(s.CompileMemory, DefaultCompileMemory)
	return s
}

// Load reads, checks, meters and compiles a module, starts it once and asks it to describe itself. source is the file's
// content; if it is nil, the file at path is read. path takes precedence over c.Use; Memory is rounded down to 64 KiB.
// The error is a *table.Error unless ctx has ended or the Runtime is closed. Compiling takes milliseconds to a minute;
// ctx interrupts it if another process compiles.
func (r *Runtime) Load(ctx context.Context, path string, source []byte, c env.Source) (env.Plugin, error) {
	m, err := r.load(ctx, path, source, c, environments)
	if err != nil {
		return nil, err
	}
	p := &Plugin{Module: m}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(r.argsError(ctx, path, source, c, err), p.Close())
	}
	return p, nil
}

// argsError returns what is wrong with the arguments of an environment that cannot describe itself with them, if it does so without
// and lists those that it takes; else err.
func (r *Runtime) argsError(ctx context.Context, path string, source []byte, c env.Source, err error) error {
	if len(c.Args) == 0 || ctx.Err() != nil {
		return err
	}
	bare := c
	bare.Args = nil
	m, fail := r.load(ctx, path, source, bare, environments)
	if fail != nil {
		return err
	}
	p := &Plugin{Module: m}
	if p.prepare(ctx) == nil {
		err = cmp.Or(env.CheckArgs(p.spec.Args, c.Args), err)
	}
	return errors.Join(err, p.Close())
}

// load is Load without starting the module, which speaks an ABI.
func (r *Runtime) load(ctx context.Context, path string, source []byte, c env.Source, a *abi) (*Module, error) {
	c = withDefaults(c, path)
	if err := checkConfig(path, c, a); err != nil {
		return nil, err
	}
	if source == nil {
		var fail *table.Error
		if source, fail = readFile(path, r.maxFile); fail != nil {
			return nil, fail
		}
	}
	module, fail := decode(path, source)
	if fail != nil {
		return nil, fail
	}
	if found := check(path, module, c.Grants, a); len(found) > 0 {
		return nil, found[0]
	}
	metered, err := module.Rewrite()
	if err != nil {
		return nil, moduleError(path, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.start(ctx, source, r.module(path, source, module, metered, c, a))
}

// start compiles the rewritten module.
func (r *Runtime) start(ctx context.Context, source []byte, m *Module) (_ *Module, err error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	if m.engine, m.compiled, err = r.compile(ctx, m, source); err != nil {
		return nil, errors.Join(refused(ctx, m.path, err), r.leave())
	}
	return m, nil
}

// module makes a module that is not compiled yet.
func (r *Runtime) module(path string, source []byte, module *meter.Module, metered *meter.Result, c env.Source, a *abi) *Module {
	sum := sha256.Sum256(source)
	m := &Module{runtime: r, path: path, config: c, abi: a, hash: hex.EncodeToString(sum[:]), metered: metered,
		memoryMin: uint64(module.Memories[0].Min) * wasmPage, memoryMax: addressable, layout: layoutOf(module, metered), exports: map[string]bool{},
		args: renderArgs(c.Args)}
	m.free = m.release
	if own := module.Memories[0]; own.HasMax {
		m.memoryMax = min(uint64(own.Max)*wasmPage, addressable)
	}
	for _, e := range module.Exports {
		m.exports[e.Name] = e.Kind == meter.KindFunction
	}
	return m
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func readFile(path string, limit int64) ([]byte, *table.Error) {
	fail := func(code, reason, help string, err error) *table.Error {
		return &table.Error{Code: code, Place: path, Reason: reason, Help: help, Err: err}
	}
	f, err := files.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fail(CodeMissing, "does not exist", "build it first, or correct the path", err)
	}
	if errors.Is(err, files.ErrNotRegular) {
		return nil, fail(CodeMissing, "cannot be read: "+oneLine(err.Error()), "give a regular file", err)
	}
	if err != nil {
		return nil, fail(CodeMissing, "cannot be read: "+oneLine(err.Error()), "make it readable", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fail(CodeMissing, "cannot be read: "+oneLine(err.Error()), "give a regular file", err)
	}
	if int64(len(b)) > limit {
		return nil, fail(CodeFormat, fmt.Sprintf("is larger than %s", byteSize(uint64(limit))),
			"strip debug information, or raise the limit on plugin files", nil)
	}
	return b, nil
}

// checkConfig rejects unknown grants and arguments that cannot be encoded for the guest.
func checkConfig(path string, c env.Source, a *abi) error {
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
