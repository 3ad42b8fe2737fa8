package spawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/place"
)

// lingering is how long after a process's death its output is still read: its last lines say why it died, but a
// grandchild may hold the pipes open for ever.
const lingering = 200 * time.Millisecond

// coreFilter is the mask of memory in a plugin's core dump, if it may leave one: private memory, nothing that is shared (see core(5)).
const coreFilter = "0x31"

// ground is shared by the starts of a runtime.
type ground struct {
	forker *forkers
	groups *groups
	cores  bool   // processes that die may leave core dumps
	dir    string // for sockets
}

// child runs one program for go-plugin. Unlike go-plugin's own way it takes its death from a pidfd and from nothing
// else, and reads its output itself.
type child struct {
	ground
	cmd     *exec.Cmd
	group   *os.File    // the process's control group, or nil
	mark    string      // in the environment of the program and of all that it starts
	sockets string      // folder that the plugin's socket must be in
	place   place.Place // where it runs
	output  *output     // gets the program's output, line by line

	hello *handshake
	pipes [2]*os.File // read ends of standard output and error
	pidfd *os.File
	pid   int

	executed time.Time // when the program was

	readers sync.WaitGroup
	started chan struct{}   // closed when Start returns, or is not called
	dead    chan struct{}   // closed when the process has ended, and at a failed Start
	status  unix.WaitStatus // set before dead is closed
}

var _ runner.Runner = (*child)(nil)

// newChild returns a child for a command that has not been started.
func newChild(cmd *exec.Cmd, g ground, out *output) *child {
	mark := newMark()
	cmd.Env = append(cmd.Env, markKey+"="+mark)
	return &child{
		cmd: cmd, mark: mark, ground: g, output: out, hello: newHandshake(),
		started: make(chan struct{}), dead: make(chan struct{}),
	}
}

// Start runs the program. It does not wait for anything that the program does.
func (c *child) Start(context.Context) error {
	defer close(c.started)
	err := c.start()
	if err != nil {
		c.hello.end()
		close(c.dead)
	}
	return err
}

// never takes the place of Start where the program is not run.
func (c *child) never() {
	c.hello.end()
	close(c.started)
	close(c.dead)
}

func (c *child) start() error {
	var ends [2]*os.File
	for i := range ends {
		var err error
		if c.pipes[i], ends[i], err = os.Pipe(); err != nil {
			return errors.Join(fmt.Errorf("pipe: %w", err), CloseFiles(c.pipes[:]), CloseFiles(ends[:]))
		}
	}
	c.cmd.Stdout, c.cmd.Stderr = ends[0], ends[1]
	fd := -1
	c.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setpgid:   true, // the host handles Ctrl-C, and the program's remaining processes can be killed together
		PidFD:     &fd,
	}
	err := errors.Join(c.startInGroup(), CloseFiles(ends[:]))
	if err != nil {
		if fd >= 0 {
			_ = unix.Close(fd) // the error that matters is the first
		}
		return errors.Join(err, CloseFiles(c.pipes[:]))
	}
	c.pid, c.executed = c.cmd.Process.Pid, time.Now()
	if err := c.watch(fd); err != nil {
		return errors.Join(err, c.cmd.Process.Kill(), c.cmd.Wait(), CloseFiles(c.pipes[:]))
	}
	c.limit()
	return nil
}

// startInGroup starts the program in its own control group, or without one where that is not possible.
func (c *child) startInGroup() error {
	group := c.groups.open()
	if group == nil {
		return c.forker.start(c.cmd, c.place)
	}
	plain, attr := *c.cmd, *c.cmd.SysProcAttr
	attr.UseCgroupFD, attr.CgroupFD = true, int(group.Fd())
	c.cmd.SysProcAttr = &attr
	err := c.forker.start(c.cmd, c.place)
	if err == nil {
		c.group = group
		return nil
	}
	c.groups.end(group)
	*c.cmd = plain
	return c.forker.start(c.cmd, c.place) // if the group was not the reason, the error is the same
}

// limit keeps shared memory out of core dumps. A process that has just died needs no limits, so errors say nothing.
func (c *child) limit() {
	if !c.cores {
		_ = unix.Prlimit(c.pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	}
	_ = os.WriteFile("/proc/"+strconv.Itoa(c.pid)+"/coredump_filter", []byte(coreFilter), 0)
}

// watch waits for the process's death on a new goroutine.
func (c *child) watch(fd int) error {
	if fd < 0 {
		return errors.New("the kernel gives no pidfd: Linux 5.4 or newer is needed")
	}
	if err := unix.SetNonblock(fd, true); err != nil { // for the poller
		return errors.Join(fmt.Errorf("pidfd: %w", err), unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	conn, err := file.SyscallConn()
	if err != nil {
		return errors.Join(fmt.Errorf("pidfd: %w", err), file.Close())
	}
	c.pidfd = file
	c.readers.Go(func() {
		c.output.read("stdout", io.TeeReader(c.pipes[0], c.hello))
		c.hello.end()
	})
	c.readers.Go(func() { c.output.read("stderr", c.pipes[1]) })
	go c.await(conn)
	return nil
}

func (c *child) await(conn syscall.RawConn) {
	// The process stays a zombie until its group has been killed: till then no other process can get its number.
	err := conn.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
	if err != nil {
		_ = c.kill()
	}
	_ = unix.Kill(-c.pid, unix.SIGKILL) // its group ends with it
	if c.group != nil {
		c.groups.end(c.group)
	}
	killMarked(c.mark)
	_ = c.cmd.Wait() // the state has the outcome
	if s, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		c.status = unix.WaitStatus(s)
	}
	for _, p := range c.pipes {
		_ = p.SetReadDeadline(time.Now().Add(lingering)) // pipes have deadlines
	}
	c.readers.Wait()
	c.output.end()
	_ = CloseFiles(c.pipes[:])
	close(c.dead)
}

// hasEnded reports whether the process is a zombie. It leaves it one.
func hasEnded(fd int) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PIDFD, fd, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || info.Signo != 0
	}
}

// kill ends the process, and no other that has its number by now. It waits for Start, and does nothing if that failed.
func (c *child) kill() error { return c.signal(unix.SIGKILL) }

// signal sends a signal to the process, like kill.
func (c *child) signal(number unix.Signal) error {
	<-c.started
	if c.pidfd == nil {
		return nil
	}
	conn, err := c.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), number, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sent, unix.ESRCH) {
		return nil
	}
	return sent
}

// end says how the process ended. It must have ended.
func (c *child) end() string {
	switch s := c.status; {
	case s.Signaled():
		return fmt.Sprintf("was killed by signal %d (%s)", int(s.Signal()), unix.SignalName(s.Signal()))
	default:
		return fmt.Sprintf("ended with status %d", s.ExitStatus())
	}
}

// close releases the pidfd.
func (c *child) close() error {
	if c.pidfd == nil {
		return nil
	}
	return c.pidfd.Close()
}

// Wait returns when the process has ended.
func (c *child) Wait(context.Context) error {
	<-c.dead
	return nil
}

// Kill ends the process at once.
func (c *child) Kill(context.Context) error { return c.kill() }

// Stdout is the handshake line and nothing else: later output goes to the log.
func (c *child) Stdout() io.ReadCloser { return io.NopCloser(c.hello) }

// Stderr is empty for go-plugin.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the path of the program.
func (c *child) Name() string { return c.cmd.Path }

// ID returns the process's number.
func (c *child) ID() string { return strconv.Itoa(c.pid) }

// Diagnose returns nothing: this package explains errors itself.
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost returns where to call the plugin. A socket that others could reach is refused.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" || !strings.HasPrefix(filepath.Clean(address), c.sockets+string(filepath.Separator)) {
		return "", "", fmt.Errorf("it listens at %s %s, not at a socket in the folder it was given", network, address)
	}
	return network, address, nil
}

// HostToPlugin returns its arguments.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
