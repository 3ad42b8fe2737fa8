package wasm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The process that compiles is this program again. It reads the module from its standard input, is told how much memory it
// may have by its second argument, writes the code into the folder that is its descriptor 3, and says by how it ends
// what became of it; details are in its standard error.
const (
	compilerDone       = 0
	compilerRefuses    = 3 // the module is not valid
	compilerNotWritten = 4 // the module is valid, but there was no room for its code
	compilerFolder     = 3
	mostComplaint      = 16 << 10
)

// ServeCompiler is what a program does whose first argument is Options.Compiler: it compiles one module for the process
// that started it, and returns the status to exit with. args are the arguments behind the first.
func ServeCompiler(args []string) int {
	refuse := func(code int, err error) int {
		fmt.Fprintln(os.Stderr, oneLine(err.Error()))
		return code
	}
	if len(args) != 1 {
		return refuse(2, errors.New("rlhost starts this command itself, to compile a module"))
	}
	memory, err := strconv.ParseUint(args[0], 10, 63)
	if err != nil {
		return refuse(2, err)
	}
	ctx := context.Background()
	// Before there are limits: without memory wazero would choose the interpreter.
	into := openFolderCompiler(ctx, fmt.Sprintf("/proc/self/fd/%d", compilerFolder))
	signal.Ignore(syscall.SIGXFSZ) // writing fails instead
	debug.SetMemoryLimit(int64(memory / 4 * 3))
	limits := []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_DATA, memory}}
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return refuse(2, err)
		}
	}
	module, err := io.ReadAll(os.Stdin)
	if err != nil {
		return refuse(2, err)
	}
	err = into.compile(ctx, module)
	var lost errNotWritten
	switch {
	case errors.As(err, &lost):
		return refuse(compilerNotWritten, err)
	case err != nil:
		return refuse(compilerRefuses, err)
	}
	return compilerDone
}

// compileApart compiles a module into a folder in another process, within limits of time and memory. Without a folder it
// finds out whether the module can be compiled within them.
func (r *Runtime) compileApart(ctx context.Context, module []byte, c *Config, path string) error {
	folder, err := os.Open(cmp.Or(path, os.DevNull))
	if err != nil {
		return err
	}
	defer folder.Close()
	within, stop := context.WithTimeout(ctx, c.Compile)
	defer stop()
	defer context.AfterFunc(r.ctx, stop)()
	complaint := &head{most: mostComplaint}
	cmd := exec.CommandContext(within, "/proc/self/exe", r.compiler, strconv.FormatUint(c.CompileMemory, 10))
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{} // it needs nothing of this process's
	cmd.Stdin, cmd.Stderr = bytes.NewReader(module), complaint
	cmd.ExtraFiles = []*os.File{folder}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setpgid:   true, // Ctrl-C is the host's affair
	}
	runtime.LockOSThread() // the child is killed when the thread ends that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case r.ctx.Err() != nil:
		return ErrClosed
	}
	said := complaint.String()
	tooBig := strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory")
	var exit *exec.ExitError
	switch {
	case within.Err() != nil:
		return errCompiler{fmt.Sprintf("takes longer to compile than its limit of %v", c.Compile),
			"raise limits.compile of the environment if the module is yours, or make it smaller"}
	case errors.As(err, &exit) && exit.ExitCode() == compilerNotWritten:
		return errNotWritten{oneLine(said)}
	case errors.As(err, &exit) && exit.ExitCode() == compilerRefuses && !tooBig:
		return errors.New(oneLine(said))
	case tooBig:
		return errCompiler{fmt.Sprintf("takes more memory to compile than its limit of %s", byteSize(c.CompileMemory)),
			"raise limits.compile_memory of the environment if the module is yours, or make it smaller"}
	}
	first, _, _ := strings.Cut(said, "\n")
	return errCompiler{fmt.Sprintf("cannot be compiled: the compiler's process: %v: %.300q", err, first), "build it again, or make it smaller"}
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	most int
}

// Write takes everything.
func (h *head) Write(b []byte) (int, error) {
	_, _ = h.Buffer.Write(b[:min(len(b), h.most-h.Len())]) // it never fails
	return len(b), nil
}
