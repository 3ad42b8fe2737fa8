package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// The process that compiles is this program again. Its first argument after the role is the module's path; on its
// standard input are the env.Source as a line of JSON, and the module. It writes the code into the folder that is its
// descriptor 3, then a byte to its standard output, and runs the module for the first time. Its exit status tells the
// result; details are in its standard error.
const (
	compilerDone       = 0
	compilerRefuses    = 3 // the module is not valid
	compilerNotWritten = 4 // the module is valid, but there was no room for its code
	compilerFolder     = 3
	mostComplaint      = 16 << 10
)

// stackRoom is how much memory the stack of a guest with endless recursion takes in its process, which grows it in
// steps.
const stackRoom = 1 << 30

// firstCalls is how many calls a module's first run has at most; each may take Init of its limits.
const firstCalls = 10

// Serve must be called by a program whose first argument is Options.Compiler: it compiles one module for its parent process, runs it for
// the first time, and returns the exit status. args are the arguments after the first. prepare completes the job that the parent has
// sent, and first is that run.
func Serve(args []string, imports Imports, prepare func(*Job) error, first func(context.Context, *Code)) int {
	refuse := func(code int, err error) int {
		fmt.Fprintln(os.Stderr, words.OneLine(err.Error()))
		return code
	}
	if len(args) != 1 {
		return refuse(2, errors.New("rlhost starts this command itself, to compile a module"))
	}
	ctx := context.Background()
	// Before there are limits: without memory wazero would choose the interpreter.
	into, err := openFolderCompiler(fmt.Sprintf("/proc/self/fd/%d", compilerFolder), imports)
	if err != nil {
		return refuse(2, err)
	}
	job, err := readJob(args[0], os.Stdin)
	if err == nil {
		err = prepare(job)
	}
	if err != nil {
		return refuse(2, err)
	}
	compiled, err := into.compile(ctx, job.Code)
	var lost errNotWritten
	notWritten := errors.As(err, &lost)
	if err != nil && !notWritten {
		return refuse(compilerRefuses, err)
	}
	if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
		return refuse(2, err)
	}
	code := &Code{sandbox: into.sandbox, compiled: compiled, ctx: ctx, leave: func() error { return nil }}
	if err := allowFirstRun(ctx, job, code, imports); err != nil {
		return refuse(2, err)
	}
	first(ctx, code)
	if notWritten {
		return refuse(compilerNotWritten, lost)
	}
	return compilerDone
}

// readJob reads the host's input, and sets this process's limits for compiling before it reads the module itself.
func readJob(path string, from io.Reader) (*Job, error) {
	in := bufio.NewReader(from)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var c env.Source
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, err
	}
	signal.Ignore(syscall.SIGXFSZ) // writing fails instead
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return nil, err
	}
	most := c.CompileMemory + c.Memory + stackRoom
	if err := limitData(c.CompileMemory, most); err != nil {
		return nil, err
	}
	file, err := io.ReadAll(in)
	return &Job{Path: path, File: file, Limits: c}, err
}

// limitData limits the private memory of this process to now; it can be raised to most, unless the user's limit is
// lower.
func limitData(now, most uint64) error {
	var has unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &has); err != nil {
		return err
	}
	now, most = min(now, has.Max), min(most, has.Max)
	debug.SetMemoryLimit(int64(now / 4 * 3))
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: now, Max: most})
}

// allowFirstRun sets this process its limits for running a module, and compiles it again if its code was lost.
func allowFirstRun(ctx context.Context, j *Job, code *Code, imports Imports) error {
	most := j.Limits.CompileMemory + j.Limits.Memory + stackRoom
	if err := limitData(most, most); err != nil {
		return err
	}
	if code.compiled != nil {
		return nil
	}
	var err error
	if code.sandbox, err = newSandbox(wazero.NewRuntimeConfig(), imports, nil, nil); err != nil {
		return err
	}
	code.compiled, err = code.sandbox.wz.CompileModule(ctx, j.Code)
	return err
}

// compileApart compiles a module into a folder in another process, within limits of time and memory, and has it run
// there for the first time: a crash then kills its process alone. Without a folder it only checks whether that works.
func (e *Engine) compileApart(ctx context.Context, j *Job, path string) error {
	err := e.tryApart(ctx, j, path)
	if errors.Is(err, errSilent) { // a second process most likely lives to report the error
		err = e.tryApart(ctx, j, path)
	}
	return err
}

// errSilent is wrapped for a compiler's process that got SIGSEGV: Go's runtime does not always live to say that there is no memory.
var errSilent = errors.New("the compiler's process ends without a word")

// tryApart is one try of compileApart.
func (e *Engine) tryApart(ctx context.Context, j *Job, path string) error {
	c := &j.Limits
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	folder, err := os.Open(cmp.Or(path, os.DevNull))
	if err != nil {
		return err
	}
	defer folder.Close()
	within, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(e.ctx, stop)()
	limit := &phases{timer: time.AfterFunc(patience*c.Compile, stop), next: c.Compile + firstCalls*c.Init}
	defer limit.timer.Stop()
	complaint := &head{most: mostComplaint}
	cmd := exec.CommandContext(within, "/proc/self/exe", e.compiler, j.Path)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{} // it needs nothing from this process
	cmd.Stdin = io.MultiReader(bytes.NewReader(append(config, '\n')), bytes.NewReader(j.File))
	cmd.Stdout, cmd.Stderr = limit, complaint
	cmd.ExtraFiles = []*os.File{folder}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setpgid:   true, // the host handles Ctrl-C
	}
	runtime.LockOSThread() // the child is killed when the thread ends that started it
	var used time.Duration
	if err = cmd.Start(); err == nil {
		over := limit.measure(cmd.Process.Pid, c.Compile, stop)
		err = cmd.Wait()
		used = over()
	}
	runtime.UnlockOSThread()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case e.ctx.Err() != nil:
		return ErrClosed
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == compilerNotWritten {
		return errNotWritten{words.OneLine(complaint.String())}
	}
	if limit.compiled.Load() {
		return diedRunning(err, complaint.String(), within.Err() != nil, limit.next)
	}
	err = notCompiled(err, complaint.String(), within.Err() != nil, used, c)
	if strings.HasPrefix(complaint.String(), "SIGSEGV") {
		return silent{err}
	}
	return err
}

// silent is an error that is errSilent too.
type silent struct{ error }

func (silent) Is(target error) bool { return target == errSilent }

// Unwrap returns the error itself.
func (s silent) Unwrap() error { return s.error }

// diedRunning says how a module's first run ended its process.
func diedRunning(err error, said string, late bool, limit time.Duration) error {
	help := "build it again, or with another version of its compiler; it ran in a process of its own, so nothing else is affected"
	if late {
		return LimitError{fmt.Sprintf("does not end its first run within %v, although that has limits of its own", limit), help}
	}
	if outOfMemory(said) {
		help = "raise limits.compile_memory of the environment if the module is yours, or let it need less to start"
	}
	first, _, _ := strings.Cut(said, "\n")
	return LimitError{fmt.Sprintf("dies at its first run: its process: %v: %.300q", err, first), help}
}

func outOfMemory(said string) bool {
	return strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory")
}

// notCompiled says how a compiler's process failed.
func notCompiled(err error, said string, late bool, used time.Duration, c *env.Source) error {
	tooBig := outOfMemory(said)
	var exit *exec.ExitError
	switch {
	case late && used < c.Compile:
		return LimitError{fmt.Sprintf("is not compiled after %v, in which the compiler had %v of processor time: the machine is busy",
			patience*c.Compile, used.Round(time.Millisecond)), "try again when the machine has less to do, or raise limits.compile of the environment"}
	case late:
		return LimitError{fmt.Sprintf("takes longer to compile than its limit of %v", c.Compile),
			"raise limits.compile of the environment if the module is yours, or make it smaller"}
	case errors.As(err, &exit) && exit.ExitCode() == compilerRefuses && !tooBig:
		return errors.New(words.OneLine(said))
	case tooBig:
		return LimitError{fmt.Sprintf("takes more memory to compile than its limit of %s", words.Bytes(c.CompileMemory)),
			"raise limits.compile_memory of the environment if the module is yours, or make it smaller"}
	}
	first, _, _ := strings.Cut(said, "\n")
	return LimitError{fmt.Sprintf("cannot be compiled: the compiler's process: %v: %.300q", err, first), "build it again, or make it smaller"}
}

// patience is how many times its limit of processor time the compiler may take by the clock, on a busy machine.
const patience = 5

// measure ends the compiler when it has used more processor time than its limit. The function that it returns ends the measurement and
// returns the time used.
func (p *phases) measure(pid int, limit time.Duration, stop func()) (end func() time.Duration) {
	over, used := make(chan struct{}), make(chan time.Duration)
	go func() {
		var newest time.Duration
		tick := time.NewTicker(min(max(limit/16, 5*time.Millisecond), time.Second))
		defer tick.Stop()
		for {
			select {
			case <-over:
				used <- newest
				return
			case <-tick.C:
			}
			if t, err := processorTime(pid); err == nil {
				newest = max(newest, t)
			}
			if newest > limit && !p.compiled.Load() {
				stop()
			}
		}
	}()
	return func() time.Duration {
		close(over)
		return <-used
	}
}

// processorTime returns how much processor time all threads of a process have had.
func processorTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(^int32(pid)<<3|2, &t) // the kernel's number of the clock of a process; see clock_getcpuclockid(3)
	return time.Duration(t.Nano()), err
}

// phases is the standard output of the process: its first byte says that the module is compiled, and from then on another
// limit holds.
type phases struct {
	timer    *time.Timer
	next     time.Duration
	compiled atomic.Bool
}

// Write takes everything.
func (p *phases) Write(b []byte) (int, error) {
	if !p.compiled.Load() && p.timer.Stop() {
		p.compiled.Store(true)
		p.timer.Reset(p.next)
	}
	return len(b), nil
}

// head keeps the beginning of its input.
type head struct {
	bytes.Buffer
	most int
}

// Write takes everything.
func (h *head) Write(b []byte) (int, error) {
	_, _ = h.Buffer.Write(b[:min(len(b), h.most-h.Len())]) // it never fails
	return len(b), nil
}
