package process

import (
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

	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

var protocolVersion = strconv.Itoa(native.Version)

// process is a plugin that runs: the child, its control connection, its wire and its rings. It knows nothing of
// components or environments. Use Runtime.start; close it once it has died.
type process struct {
	aborted   atomic.Bool // what it printed last is a dump of where it was
	runtime   *Runtime
	component string
	program   Program
	log       *slog.Logger
	output    *output
	child     *child
	client    *plugin.Client
	conn      *grpc.ClientConn
	sockets   string // its folder

	wire        *wire
	in, out     *ring.SPSC // to the plugin, from the plugin
	alive       context.Context
	description native.Description
	took        stages
}

// startOptions say what a process is started for.
type startOptions struct {
	name string       // of the component that it is started for
	log  *slog.Logger // carries the name of the component
	// before is called before the program is executed: what it sends lies on the wire when the program looks. May
	// be nil.
	before func(*wire) error
	// handle is called with each frame of the plugin, on a goroutine of the wire, and owns its files.
	handle func(f *native.Frame, files []*os.File)
	// broken is called, at most twice and on goroutines of the wire, when the plugin breaks the protocol there.
	broken func(error)
}

// start runs a program until it answers and has described itself. It blocks for as long as Program.Start. The
// errors are *Error, or ctx's.
func (r *Runtime) start(ctx context.Context, program Program, o startOptions) (_ *process, err error) {
	p := &process{runtime: r, component: o.name, program: program.withDefaults(), log: o.log, output: &output{log: o.log}}
	if err := r.enter(p); err != nil {
		return nil, err
	}
	defer r.starts.Done()
	defer func() {
		if err != nil {
			r.leave(p)
		}
	}()
	p.took.since = time.Now()
	ctx, closing := context.WithCancelCause(ctx)
	defer closing(nil)
	defer context.AfterFunc(r.open, func() { closing(errClosed) })()
	limited, cancel := context.WithTimeoutCause(ctx, p.program.Start, errSlow)
	defer cancel()
	if err := p.open(limited, r, o); err != nil {
		p.abandon()
		return nil, err
	}
	p.wire.run(o.handle, o.broken)
	if err := p.describe(limited); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// verifying checks the sum of the program's file while others prepare its start.
func (p *process) verifying() <-chan error {
	verified := make(chan error, 1)
	if p.program.SHA256 == "" {
		verified <- nil
		return verified
	}
	go func() { verified <- p.verify() }()
	return verified
}

// verify checks the sum of the program's file.
func (p *process) verify() error {
	sum, err := hex.DecodeString(p.program.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return &Error{Code: CodeChecksum, Program: p.program.Name,
			Reason: fmt.Sprintf("%q is not a SHA-256", p.program.SHA256), Help: "write its 64 hexadecimal digits"}
	}
	secure := plugin.SecureConfig{Checksum: sum, Hash: sha256.New()}
	ok, err := secure.Check(p.program.Path)
	if err != nil {
		return runError(&p.program, p.program.Path, err)
	}
	if !ok {
		return &Error{Code: CodeChecksum, Program: p.program.Name, Err: plugin.ErrChecksumsDoNotMatch,
			Reason: fmt.Sprintf("%s is not the file that sha256 names", p.program.Path),
			Help:   "if it was meant to change, write the new sum: sha256sum " + p.program.Path}
	}
	return nil
}

// open makes the wire and the rings, runs the program if it is the right one, and connects to it.
func (p *process) open(ctx context.Context, r *Runtime, o startOptions) error {
	verified := p.verifying()
	wire, theirs, err := newWire()
	if err != nil {
		return err
	}
	defer theirs.Close()
	p.wire = wire
	if err := p.makeRings(); err != nil {
		return err
	}
	if o.before != nil {
		if err := o.before(wire); err != nil {
			return err
		}
	}
	inherited := []*os.File{theirs}
	for _, ring := range []*ring.SPSC{p.in, p.out} {
		fd, err := unix.FcntlInt(uintptr(ring.FD()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("ring: %w", err)
		}
		f := os.NewFile(uintptr(fd), "ring")
		defer f.Close()
		inherited = append(inherited, f)
	}
	p.took.open = p.took.part()
	if err := <-verified; err != nil {
		return err
	}
	p.took.verify = p.took.part()
	return p.run(ctx, r, inherited)
}

// makeRings makes both at the same time: it takes long enough to tell how much memory there is, and to clear some.
func (p *process) makeRings() error {
	var outErr error
	made := make(chan struct{})
	go func() {
		defer close(made)
		p.out, outErr = ring.New("rlhost: from "+shorten(p.program.Name), hostabi.LinkCells)
	}()
	var err error
	p.in, err = ring.New("rlhost: to "+shorten(p.program.Name), hostabi.LinkCells)
	<-made
	return errors.Join(err, outErr)
}

// shorten keeps the names of segments within what the system takes.
func shorten(name string) string { return name[:min(len(name), 100)] }

// run executes the program and waits for its handshake.
func (p *process) run(ctx context.Context, r *Runtime, inherited []*os.File) error {
	cmd, err := p.command(inherited)
	if err != nil {
		return err
	}
	p.child = newChild(cmd, r.forker, r.groups, r.options.Cores, p.output)
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion: native.Version, MagicCookieKey: native.CookieKey, MagicCookieValue: native.CookieValue,
		},
		Plugins:          plugin.PluginSet{native.PluginName: dispenser{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           newQuietLogger(p.log),
		SkipHostEnv:      true,
		StartTimeout:     p.program.Start + time.Minute,            // ctx ends it before
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: r.dir}, // it makes a folder there
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
			cmd.Env = append(cmd.Env, spec.Env...)
			p.sockets, p.child.sockets = dir, dir
			return p.child, nil
		},
	})
	defer context.AfterFunc(ctx, func() { _ = p.child.kill() })()
	alive, end := context.WithCancelCause(context.Background())
	p.alive = alive
	go func() {
		<-p.child.dead
		end(errDied)
	}()
	client, err := p.client.Client()
	if err == nil {
		p.took.connected(p.child)
		var made any
		if made, err = client.Dispense(native.PluginName); err == nil {
			p.conn = made.(*grpc.ClientConn)
			return nil
		}
	}
	if p.sockets == "" { // go-plugin has not come as far as to ask for the child
		p.child.never()
		return &Error{Code: CodeStart, Program: p.program.Name, Reason: err.Error(), Err: err}
	}
	return p.explain(ctx, err)
}

// errDied ends the calls to a process that has ended.
var errDied = errors.New("its process has ended")

// explain turns go-plugin's error into one for people.
func (p *process) explain(ctx context.Context, err error) error {
	if p.client.ID() == "0" { // it was never executed
		return runError(&p.program, p.child.cmd.Path, err)
	}
	_ = p.child.kill()
	<-p.child.dead
	slow := context.Cause(ctx) == errSlow
	if ctx.Err() != nil && !slow {
		return context.Cause(ctx)
	}
	return helloError(&p.program, p.child, p.output.words(), slow, err)
}

// command returns what is to be executed.
func (p *process) command(inherited []*os.File) (*exec.Cmd, error) {
	path, err := filepath.Abs(p.program.Path)
	if err != nil {
		return nil, runError(&p.program, p.program.Path, err)
	}
	argv := append(append(append([]string{}, p.program.Interpreter...), path), p.program.Args...)
	name := argv[0]
	if len(p.program.Interpreter) > 0 {
		if name, err = exec.LookPath(argv[0]); err != nil {
			return nil, runError(&p.program, argv[0], err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, runError(&p.program, path, err)
		}
	}
	return &exec.Cmd{
		Path: name, Args: argv, Dir: p.program.Dir, ExtraFiles: inherited, Env: append(environment(p.program.Env), componentVariable(p.component)),
	}, nil
}

// environment returns the host's variables of the given names and of those that programs cannot do without.
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

// describe asks the plugin what it is and whether it fits.
func (p *process) describe(ctx context.Context) error {
	if err := p.call(ctx, native.MethodDescribe, native.Empty{}, &p.description); err != nil {
		return err
	}
	p.took.describe = p.took.part()
	theirs, _, _ := strings.Cut(p.description.ABI, ".")
	ours, _, _ := strings.Cut(native.ABI, ".")
	if theirs != ours {
		return &Error{Code: CodeVersion, Program: p.program.Name,
			Reason: fmt.Sprintf("it was built for ABI %q, this host has %s", p.description.ABI, native.ABI),
			Help:   "build it with the SDK that belongs to this rlhost"}
	}
	return nil
}

// call makes a control call. It blocks until the answer, the end of ctx, or the death of the process. What the
// plugin refuses is an *Error with the plugin's own words as Reason.
func (p *process) call(ctx context.Context, method string, request, reply any) error {
	doc, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("call %s: %w", method, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.alive, func() { cancel(errDied) })()
	answer := new(wrapperspb.BytesValue)
	err = p.conn.Invoke(ctx, "/"+native.Service+"/"+method, wrapperspb.Bytes(doc), answer)
	if err != nil {
		return p.callError(ctx, method, err)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Value, reply); err != nil {
		return &Error{Code: CodeProtocol, Program: p.program.Name, Err: err,
			Reason: fmt.Sprintf("its answer to %s is no document of the protocol: %v", method, err)}
	}
	return nil
}

// gone reports whether the process is dead, after something that it had to do with has failed: connections break a
// moment before the kernel says why.
func (p *process) gone() bool {
	select {
	case <-p.alive.Done():
		return true
	case <-time.After(time.Second):
		return false
	}
}

// sendError tells why what goes with a call could not be sent.
func (p *process) sendError(method string, err error) error {
	if p.gone() {
		return p.deathError(method)
	}
	return err
}

func (p *process) deathError(method string) *Error {
	return &Error{Code: CodeDied, Program: p.program.Name, Err: errDied,
		Reason: fmt.Sprintf("it %s during %s%s", p.child.end(), method, p.lastWords())}
}

// callError tells a refusal of the plugin from a call that did not come through.
func (p *process) callError(ctx context.Context, method string, err error) error {
	cause := context.Cause(ctx)
	// Canceled without a cause: who buries the process has closed the connection already.
	if code := status.Code(err); cause == nil && (code == codes.Unavailable || code == codes.Canceled) && p.gone() {
		cause = errDied
	}
	switch {
	case errors.Is(cause, errDied):
		return p.deathError(method)
	case errors.Is(cause, errSlow):
		return &Error{Code: CodeHello, Program: p.program.Name, Err: errSlow,
			Reason: fmt.Sprintf("no answer to %s within %v", method, p.program.Start), Help: "raise `start` if it needs longer"}
	case cause != nil:
		return cause
	}
	said := status.Convert(err)
	if said.Code() == codes.Unimplemented && strings.HasPrefix(said.Message(), "unknown ") { // gRPC's own words
		return &Error{Code: CodeProtocol, Program: p.program.Name, Err: err,
			Reason: fmt.Sprintf("it does not know the call %s", method), Help: "build it with the SDK that belongs to this rlhost"}
	}
	return &Error{Code: CodeProtocol, Program: p.program.Name, Reason: said.Message(), Err: err}
}

// lastWords returns what the program printed last to standard error, for an error message.
func (p *process) lastWords() string {
	if p.aborted.Load() {
		return " (the log has where it was)"
	}
	return quoteWords(p.output.words())
}

// pid returns the number of the process.
func (p *process) pid() int { return p.child.pid }

// died returns a channel that is closed when the process has ended.
func (p *process) died() <-chan struct{} { return p.child.dead }

// kill ends the process at once. It does not wait; see died.
func (p *process) kill() { _ = p.child.kill() } // an error means that there is nothing to kill

// abort has the process print where it is and end, as Go and Python do at this signal, and kills it if it has not ended
// soon. It does not wait; see died.
func (p *process) abort() {
	p.aborted.Store(true)
	if p.child.signal(unix.SIGABRT) != nil {
		p.kill()
		return
	}
	go func() {
		select {
		case <-p.died():
		case <-time.After(lastWordsTime):
			p.kill()
		}
	}()
}

// lastWordsTime is how long a process that has stalled may take to say where.
const lastWordsTime = time.Second

// stop asks the plugin to stop what it does, then to end, and kills it if that takes longer than grace. It returns
// when the process has ended, with what the plugin said to the first.
func (p *process) stop(grace time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), grace, errGrace)
	defer cancel()
	err := p.call(ctx, native.MethodStop, native.Empty{}, nil)
	defer context.AfterFunc(ctx, p.kill)()
	p.client.Kill() // asks it to end, and waits for that
	p.kill()
	<-p.child.dead
	return err
}

// errGrace: the plugin was asked to stop and did not.
var errGrace = errors.New("it does not stop")

// close releases what the process had. It must have ended, and nobody may use its rings any more.
func (p *process) close() error {
	defer p.runtime.leave(p)
	if p.wire != nil {
		p.wire.close()
	}
	if p.client != nil {
		p.client.Kill() // nothing is left to kill: this releases the connection
	}
	var errs []error
	for _, r := range []*ring.SPSC{p.in, p.out} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	if p.child != nil {
		errs = append(errs, p.child.close())
	}
	return errors.Join(append(errs, os.RemoveAll(p.sockets))...)
}

// abandon ends a process whose start went wrong.
func (p *process) abandon() {
	if p.child != nil {
		p.kill()
		<-p.child.dead
	}
	_ = p.close() // the error that matters is the one of the start
}
