package spawn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/link/transports"
	"github.com/rlhost/rlhost/hostabi/native"
)

// Process is a plugin that runs: the child, its control connection, its wire and its transport. It knows nothing of
// components or environments. Close it once it has died.
type Process struct {
	aborted   atomic.Bool // its last output is a dump of its stacks
	stopping  atomic.Bool // it may close its end of the wire
	leave     func()      // forgets it
	waits     *waits
	component string
	Program   Program
	log       *slog.Logger
	output    *output
	child     *child
	client    *plugin.Client
	conn      *grpc.ClientConn
	sockets   string // its folder

	Wire        *Wire
	Transport   link.Transport // of messages, to the plugin and from it
	alive       context.Context
	Description native.Description
	Took        Stages
}

// StartOptions are the options of a start.
type StartOptions struct {
	Name string       // of the component that it is started for
	Log  *slog.Logger // carries the name of the component
	// Before is called before the program is executed: its frames are on the wire when the program looks. May be nil.
	Before func(*Wire) error
	// Handle is called with each frame of the plugin, on a goroutine of the wire, and owns its files.
	Handle func(f *native.Frame, files []*os.File)
	// Broken is called, at most three times and on goroutines of the wire, when the plugin breaks the protocol there or closes its end.
	Broken func(error)
}

// verifying checks the sum of the program's file while others prepare its start.
func (p *Process) verifying() <-chan error {
	verified := make(chan error, 1)
	if p.Program.SHA256 == "" {
		verified <- nil
		return verified
	}
	go func() { verified <- p.verify() }()
	return verified
}

// verify checks the sum of the program's file.
func (p *Process) verify() error {
	sum, err := hex.DecodeString(p.Program.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return &Error{Code: CodeChecksum, Program: p.Program.Name,
			Reason: fmt.Sprintf("%q is not a SHA-256", p.Program.SHA256), Help: "write its 64 hexadecimal digits"}
	}
	secure := plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}
	ok, err := secure.Check(p.Program.Path)
	if err != nil {
		return runError(&p.Program, p.Program.Path, err)
	}
	if !ok {
		return &Error{Code: CodeChecksum, Program: p.Program.Name, Err: plugin.ErrChecksumsDoNotMatch,
			Reason: fmt.Sprintf("%s is not the file that sha256 names", p.Program.Path),
			Help:   "if it was meant to change, write the new sum: sha256sum " + p.Program.Path}
	}
	return nil
}

// open makes the wire and the transport, runs the program if it is the right one, and connects to it.
func (p *Process) open(ctx context.Context, g ground, o StartOptions) error {
	verified := p.verifying()
	wire, theirs, err := newWire()
	if err != nil {
		return err
	}
	defer theirs.Close()
	p.Wire = wire
	var ends []*os.File
	if p.Transport, ends, err = transport().New(p.Program.Name); err != nil {
		return err
	}
	defer CloseFiles(ends)
	if o.Before != nil {
		if err := o.Before(wire); err != nil {
			return err
		}
	}
	p.Took.Open = p.Took.Part()
	if err := <-verified; err != nil {
		return err
	}
	p.Took.Verify = p.Took.Part()
	return p.run(ctx, g, append([]*os.File{theirs}, ends...))
}

// transport returns the one between the host and all its plugins.
func transport() transports.Transport { return transports.All()[0] }

// run executes the program and waits for its handshake.
func (p *Process) run(ctx context.Context, g ground, inherited []*os.File) error {
	cmd, err := p.command(inherited)
	if err != nil {
		return err
	}
	p.child = newChild(cmd, g, p.output)
	p.child.place = p.Program.Place
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: native.Version, MagicCookieKey: native.CookieKey, MagicCookieValue: native.CookieValue,
		},
		Plugins:          plugin.PluginSet{native.PluginName: dispenser{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           goPluginLog(p.log),
		SkipHostEnv:      true,
		StartTimeout:     p.Program.Start + time.Minute,            // ctx ends it before
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: g.dir}, // it makes a folder there
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
			cmd.Env = append(cmd.Env, spec.Env...)
			p.sockets, p.child.sockets = dir, dir
			return p.child, nil
		},
	})
	defer context.AfterFunc(ctx, func() { _ = p.child.kill() })()
	defer p.waits.begin(p.child, &p.Program, "")()
	alive, end := context.WithCancelCause(context.Background())
	p.alive = alive
	go func() {
		<-p.child.dead
		end(ErrDied)
	}()
	client, err := p.client.Client()
	if err == nil {
		p.Took.connected(p.child)
		var made any
		if made, err = client.Dispense(native.PluginName); err == nil {
			p.conn = made.(*grpc.ClientConn)
			return nil
		}
	}
	if p.sockets == "" { // go-plugin has not come as far as to ask for the child
		p.child.never()
		return &Error{Code: CodeStart, Program: p.Program.Name, Reason: err.Error(), Err: err}
	}
	return p.explain(ctx, err)
}

// goPluginLog is for go-plugin's own log. It goes to a log at level debug, because this package reports everything that concerns the user.
func goPluginLog(log *slog.Logger) hclog.Logger {
	lines := slog.NewLogLogger(log.With("from", "go-plugin").Handler(), slog.LevelDebug)
	return hclog.New(&hclog.LoggerOptions{Output: lines.Writer(), Level: hclog.Debug, DisableTime: true})
}

// explain turns go-plugin's error into one for people.
func (p *Process) explain(ctx context.Context, err error) error {
	if p.client.ID() == "0" { // it was never executed
		return runError(&p.Program, p.child.cmd.Path, err)
	}
	_ = p.child.kill()
	<-p.child.dead
	slow := errors.Is(context.Cause(ctx), ErrSlow)
	if ctx.Err() != nil && !slow {
		return context.Cause(ctx)
	}
	return helloError(&p.Program, p.child, p.output.words(), slow, err)
}

// command returns the command to execute.
func (p *Process) command(inherited []*os.File) (*exec.Cmd, error) {
	path, err := filepath.Abs(p.Program.Path)
	if err != nil {
		return nil, runError(&p.Program, p.Program.Path, err)
	}
	argv := append(append(append([]string{}, p.Program.Interpreter...), path), p.Program.Args...)
	name := argv[0]
	if len(p.Program.Interpreter) > 0 {
		if name, err = exec.LookPath(argv[0]); err != nil {
			return nil, runError(&p.Program, argv[0], err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, runError(&p.Program, path, err)
		}
	}
	return &exec.Cmd{
		Path: name, Args: argv, Dir: p.Program.Dir, ExtraFiles: inherited,
		Env: append(append(environment(p.Program.Env), p.Program.Place.Env()...), componentKey+"="+p.component, native.TransportKey+"="+transport().Name),
	}, nil
}

// environment returns the host's variables of the given names and the variables that every program needs.
func environment(names []string) []string {
	var env []string
	for _, name := range append([]string{"PATH", "HOME", "LANG", "TMPDIR"}, names...) {
		if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(name, "PLUGIN_") && name != native.CookieKey {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// dispenser gives the connection itself.
type dispenser struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer is the plugin's.
func (dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return errors.ErrUnsupported }

// GRPCClient returns the connection.
func (dispenser) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}

// describe asks the plugin for its description and checks that it fits.
func (p *Process) describe(ctx context.Context) error {
	if err := p.Call(ctx, native.MethodDescribe, native.Empty{}, &p.Description); err != nil {
		return err
	}
	p.Took.Describe = p.Took.Part()
	theirs, _, _ := strings.Cut(p.Description.ABI, ".")
	ours, _, _ := strings.Cut(native.ABI, ".")
	if theirs != ours {
		return &Error{Code: CodeVersion, Program: p.Program.Name,
			Reason: fmt.Sprintf("it was built for ABI %q, this host has %s", p.Description.ABI, native.ABI),
			Help:   "build it with the SDK that belongs to this rlhost"}
	}
	if opened := cmp.Or(p.Description.Transport, native.TransportRings); opened != transport().Name {
		return &Error{Code: CodeVersion, Program: p.Program.Name,
			Reason: fmt.Sprintf("it has the transport %q, this host uses %q", opened, transport().Name),
			Help:   "build it with the SDK that belongs to this rlhost"}
	}
	return nil
}

// Call makes a control call. It blocks until the answer, the end of ctx, or the death of the process. A refusal is
// an *Error with the plugin's own words as Reason.
func (p *Process) Call(ctx context.Context, method string, request, reply any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.alive, func() { cancel(ErrDied) })()
	defer p.waits.begin(p.child, &p.Program, method)()
	answer := new(wrapperspb.BytesValue)
	err = p.conn.Invoke(ctx, "/"+native.Service+"/"+method, wrapperspb.Bytes(doc), answer)
	if err != nil {
		return p.callError(ctx, method, err)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Value, reply); err != nil {
		return &Error{Code: CodeProtocol, Program: p.Program.Name, Err: err,
			Reason: fmt.Sprintf("its answer to %s is no document of the protocol: %v", method, err)}
	}
	return nil
}

// gone reports whether the process is dead, after something that it had to do with has failed: connections break a
// moment before the kernel says why.
func (p *Process) gone() bool {
	select {
	case <-p.alive.Done():
		return true
	case <-time.After(goneWithin):
		return false
	}
}

const (
	// closedFor is how long a process may live that has closed its end of the wire: it can neither be asked nor send anything, and may
	// print for ever that its calls fail.
	closedFor = 500 * time.Millisecond
	// goneWithin is how long it takes at most until it is known that a process is dead or has closed its end of the wire.
	goneWithin = 2 * time.Second
)

// errClosedWire: the process lives and cannot be reached.
var errClosedWire = errors.New("it has closed the socket that it got from the host, and lives on")

// watchWire calls broken where a process has closed its end of the wire and neither ends nor is asked to.
func (p *Process) watchWire(broken func(error)) {
	<-p.Wire.eof
	select {
	case <-p.alive.Done():
	case <-time.After(closedFor):
		if !p.stopping.Load() && !p.Wire.isClosed() {
			broken(errClosedWire)
		}
	}
}

// SendError is the error for a call whose data could not be sent.
func (p *Process) SendError(method string, err error) error {
	if p.gone() {
		return p.deathError(method)
	}
	return err
}

func (p *Process) deathError(method string) *Error {
	return &Error{Code: CodeDied, Program: p.Program.Name, Err: ErrDied,
		Reason: fmt.Sprintf("it %s during %s%s", p.child.end(), method, p.LastWords())}
}

// callError distinguishes a refusal of the plugin from a call that did not come through.
func (p *Process) callError(ctx context.Context, method string, err error) error {
	// The plugin knows the deadline too, and its answer that it has passed may come before ctx ends.
	if _, limited := ctx.Deadline(); limited && status.Code(err) == codes.DeadlineExceeded {
		<-ctx.Done()
	}
	cause := context.Cause(ctx)
	// Canceled without a cause: close has closed the connection already.
	if code := status.Code(err); cause == nil && (code == codes.Unavailable || code == codes.Canceled) && p.gone() {
		cause = ErrDied
	}
	switch {
	case errors.Is(cause, ErrDied):
		return p.deathError(method)
	case errors.Is(cause, ErrSlow):
		return &Error{Code: CodeHello, Program: p.Program.Name, Err: ErrSlow,
			Reason: fmt.Sprintf("no answer to %s within %v", method, p.Program.Start), Help: "raise `start` if it needs longer"}
	case cause != nil:
		return cause
	}
	said := status.Convert(err)
	if said.Code() == codes.Unimplemented && strings.HasPrefix(said.Message(), "unknown ") { // gRPC's own words
		return &Error{Code: CodeProtocol, Program: p.Program.Name, Err: err,
			Reason: fmt.Sprintf("it does not know the call %s", method), Help: "build it with the SDK that belongs to this rlhost"}
	}
	return &Error{Code: CodeProtocol, Program: p.Program.Name, Reason: said.Message(), Err: err}
}

// End says how the process ended, with the program's last output. It must have ended.
func (p *Process) End() string { return p.child.end() + p.LastWords() }

// LastWords returns the program's last output to standard error, for an error message.
func (p *Process) LastWords() string {
	if p.aborted.Load() {
		if at := p.output.where(); at != "" {
			return fmt.Sprintf(" (it was in %s; the log has the rest)", at)
		}
		return " (the log has where it was)"
	}
	return quoteWords(p.output.words())
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.child.pid }

// Traced reports whether a debugger is attached to the process.
func (p *Process) Traced() bool {
	return numberOf("/proc/"+strconv.Itoa(p.PID()), "TracerPid") != 0
}

// Died returns a channel that is closed when the process has ended.
func (p *Process) Died() <-chan struct{} { return p.child.dead }

// Kill ends the process at once. It does not wait; see Died.
func (p *Process) Kill() { _ = p.child.kill() } // an error means that there is nothing to kill

// Abort makes the process print its stacks and end, as Go and Python do at this signal, and kills it if it does not end
// in time. It does not wait; see Died.
func (p *Process) Abort() {
	p.aborted.Store(true)
	if p.child.signal(unix.SIGABRT) != nil {
		p.Kill()
		return
	}
	go func() {
		select {
		case <-p.Died():
		case <-time.After(lastWordsTime):
			p.Kill()
		}
	}()
}

// lastWordsTime is how long a process that has stalled may take to say where.
const lastWordsTime = time.Second

// Stop asks the plugin to stop its work, then to end, and kills it if that takes longer than grace. It returns
// when the process has ended, with the plugin's answer to the first call.
func (p *Process) Stop(grace time.Duration) error {
	p.stopping.Store(true)
	ctx, cancel := context.WithTimeoutCause(context.Background(), grace, ErrGrace)
	defer cancel()
	err := p.Call(ctx, native.MethodStop, native.Empty{}, nil)
	defer context.AfterFunc(ctx, p.Kill)()
	p.client.Kill() // asks it to end, and waits for that
	p.Kill()
	<-p.child.dead
	return err
}

// Close releases the process's resources. It must have ended, and its transport must not be used any more.
func (p *Process) Close() error {
	defer p.leave()
	if p.Wire != nil {
		p.Wire.close()
	}
	if p.client != nil {
		p.client.Kill() // nothing is left to kill: this releases the connection
	}
	var errs []error
	if p.Transport != nil {
		errs = append(errs, p.Transport.Close())
	}
	if p.child != nil {
		errs = append(errs, p.child.close())
	}
	return errors.Join(append(errs, os.RemoveAll(p.sockets))...)
}

// abandon ends a process whose start went wrong.
func (p *Process) abandon() {
	if p.child != nil {
		p.Kill()
		<-p.child.dead
	}
	_ = p.Close() // the error that matters is the one of the start
}
