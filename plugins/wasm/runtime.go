package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/rlhost/rlhost/hostabi"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// Options configure a Runtime. The zero value works.
type Options struct {
	// CacheDir is the folder of compiled code; see engine.Options. Empty means rlhost in the user's cache folder.
	CacheDir string
	// Compiler is the first argument that makes this program call ServeCompiler; see engine.Options. Empty means that modules are compiled
	// within this process, without limits.
	Compiler string
	// MaxFileBytes limits the size of a module's file; 0 = module.DefaultMaxFileBytes.
	MaxFileBytes int64
	// Log receives the output of guests and the runtime's messages; nil discards them.
	Log *slog.Logger
	// Shown is how many lines of each module that is not granted log are logged nevertheless; how many it wrote is logged at its end.
	Shown int
	// Sampler finds where guests spend their time; nil: nobody asks.
	Sampler *guest.Sampler
}

// Runtime compiles and runs modules. One is enough for a process. Its methods may be called concurrently.
type Runtime struct {
	engine  *engine.Engine
	out     guest.Output
	maxFile int64
}

// New makes a Runtime. An unusable cache folder costs compile time at every start and is logged; it is not an
// error.
func New(o Options) (*Runtime, error) {
	log := cmp.Or(o.Log, slog.New(slog.NewTextHandler(io.Discard, nil)))
	imports := engine.Imports(guest.Imports)
	if o.Sampler != nil {
		imports = o.Sampler.Imports
	}
	e, err := engine.New(engine.Options{CacheDir: o.CacheDir, Compiler: o.Compiler, Imports: imports, Log: log})
	if err != nil {
		return nil, err
	}
	return &Runtime{e, guest.Output{Log: log, Shown: o.Shown}, cmp.Or(o.MaxFileBytes, module.DefaultMaxFileBytes)}, nil
}

// Close stops running guest calls and forbids new plugins. The memory of the runtime is freed when the last
// plugin is closed.
func (r *Runtime) Close() error { return r.engine.Close() }

// Checked reports whether MarkChecked has been called for the module with that hash, by any process of this user.
func (r *Runtime) Checked(hash string) bool { return r.engine.Checked(hash) }

// MarkChecked remembers, next to the compiled code, that the environments of the module with that hash write all required values and
// nothing else. It logs an error if it cannot.
func (r *Runtime) MarkChecked(hash string) { r.engine.MarkChecked(hash) }

// Load reads, checks, meters and compiles a module, starts it once and asks it to describe itself. source is the file's
// content; if it is nil, the file at path is read. path takes precedence over c.Use; Memory is rounded down to 64 KiB.
// The error is a *table.Error unless ctx has ended or the Runtime is closed. Compiling takes milliseconds to a minute;
// ctx interrupts it if another process compiles.
func (r *Runtime) Load(ctx context.Context, path string, source []byte, c env.Source) (env.Plugin, error) {
	c = c.ReadData("")
	c.Args = r.written(ctx, path, source, c)
	m, err := r.load(ctx, path, source, c, module.Environments)
	if err != nil {
		return nil, err
	}
	p := newPlugin(m)
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(r.argsError(ctx, path, source, c, err), p.Close())
	}
	return p, nil
}

// written returns the arguments as the configuration has them, whose types the environment describes. Where every value is written
// alike whatever its type is, which is almost always, it is not asked.
func (r *Runtime) written(ctx context.Context, path string, source []byte, c env.Source) map[string]string {
	if given := slices.Collect(maps.Values(c.Args)); !slices.ContainsFunc(given, func(v string) bool { return !hostabi.Settled(v) }) {
		return c.Args
	}
	bare := c
	bare.Args = nil
	m, err := r.load(ctx, path, source, bare, module.Environments)
	if err != nil {
		return c.Args // the next load says why
	}
	p := newPlugin(m)
	defer func() { _ = p.Close() }()
	if p.prepare(ctx) != nil {
		return c.Args
	}
	args := maps.Clone(c.Args)
	for i := range p.spec.Args {
		a := &p.spec.Args[i]
		if value, ok := args[a.Name]; ok && a.Accepts(value) == nil {
			args[a.Name] = a.Written(value)
		}
	}
	return args
}

// argsError returns the mistakes in the arguments of an environment that cannot describe itself with them, if it can without and
// lists the arguments that it takes; else err.
func (r *Runtime) argsError(ctx context.Context, path string, source []byte, c env.Source, err error) error {
	if len(c.Args) == 0 || ctx.Err() != nil {
		return err
	}
	bare := c
	bare.Args = nil
	m, fail := r.load(ctx, path, source, bare, module.Environments)
	if fail != nil {
		return err
	}
	p := newPlugin(m)
	if p.prepare(ctx) == nil {
		err = cmp.Or(env.CheckArgs(p.spec.Args, c.Args), err)
	}
	return errors.Join(err, p.Close())
}

// LoadComponent is Load for a module of a component. It is started, and not asked anything.
func (r *Runtime) LoadComponent(ctx context.Context, path string, source []byte, c env.Source) (*guest.Module, error) {
	m, err := r.load(ctx, path, source, c, module.Components)
	if err != nil {
		return nil, err
	}
	if err := m.Prepare(ctx, (*guest.Instance).TakeErrorText); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// load is Load of a module of a kind without starting it.
func (r *Runtime) load(ctx context.Context, path string, source []byte, c env.Source, a *module.ABI) (*guest.Module, error) {
	file, source, err := module.Read(path, source, c, a, r.maxFile)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	code, err := r.engine.Compile(ctx, &engine.Job{Path: path, File: source, Code: file.Metered.Code, Limits: file.Config})
	if err != nil {
		return nil, refused(ctx, path, err)
	}
	return guest.New(file, code, r.out), nil
}

// refused says why the compiler rejected a module. It has seen the rewritten one, whose function indexes are one
// higher; the original is not shown to it, because it reserves memory by any number it reads.
func refused(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil || errors.Is(err, engine.ErrClosed) {
		return err
	}
	var limit engine.LimitError
	if errors.As(err, &limit) {
		return &table.Error{Code: module.CodeFeature, Place: path, Reason: limit.Reason, Help: limit.Help, Err: err}
	}
	return &table.Error{Code: module.CodeFormat, Place: path, Reason: fmt.Sprintf("is not valid: %s", words.OneLine(err.Error())),
		Help: "build or copy the file again", Err: err}
}

// ServeCompiler must be called by a program whose first argument is Options.Compiler: it compiles one module for its
// parent process, starts the module once, and returns the exit status. args are the arguments after the first.
func ServeCompiler(args []string) int { return serveCompiler(args, func(*guest.Module, error) {}) }

// serveCompiler calls ran after the module's first run, with its error. The guest's faults are no errors here: the host, which runs it next,
// reports them.
func serveCompiler(args []string, ran func(*guest.Module, error)) int {
	var file *module.File
	read := func(j *engine.Job) (err error) {
		if file, err = module.ReadChecked(j.Path, j.File, j.Limits); err == nil {
			j.Code = file.Metered.Code
		}
		return err
	}
	return engine.Serve(args, guest.Imports, read, func(ctx context.Context, code *engine.Code) {
		m := guest.New(file, code, guest.Output{Log: slog.New(slog.DiscardHandler)})
		if file.ABI == module.Components {
			ran(m, m.Prepare(ctx, (*guest.Instance).TakeErrorText))
		} else {
			ran(m, newPlugin(m).prepare(ctx))
		}
	})
}
