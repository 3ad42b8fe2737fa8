package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// proxy stands for a component that lives in a process. It runs on a loop of the host as any component does; its
// slots send to the process, and what the process emits it emits for it.
//
// Three parties work on it: the loop (slots, Snapshot), whoever takes messages out of the ring (deliver, control;
// usually the loop too), and its supervisor, which replaces one life of the process by the next. Lock order:
// proxy.mu, life.mu, then those of link and arena.
type proxy struct {
	runtime  *spawn.Runtime
	program  spawn.Program
	kind     native.Kind
	snapshot bool // its state can be saved

	configured bool // a process has been told what it is
	pauses     bool // it comes to rest when it is asked to
	manifest   component.Manifest

	config map[string]any
	flow   component.Flow

	h       *component.Host
	signals []*bus.Signal
	slots   []slot
	meters  meters

	pause     *pause         // of the loop: what is under way to rest, or at rest; nil without one
	asking    sync.WaitGroup // goroutines that wait for the process to come to rest
	published atomic.Uint64  // newest policy version whose weights it has emitted

	link   atomic.Pointer[link.Link] // of the life that runs, or of the last one; messages wait in it
	quit   chan struct{}             // closed by Stop
	ended  chan struct{}             // closed when the supervisor has ended
	stop   sync.Once
	stopFn error

	mu       sync.Mutex
	session  *session                     // the newest; nil before Start
	state    string                       // one of component.ProcessRunning and its like
	restarts int                          // so far
	waiting  []link.Pending               // what came while there was no link
	saved    *saved                       // newest state
	open     map[question]hostabi.Message // requests about blocks on loan that the process has not answered
	own      []uint8                      // arenas that the process asked for
	failed   bool                         // the component has said that it cannot go on
	rested   bool                         // the Receiver is paused because there is no process
}

// slot is what the proxy knows of one of its slots.
type slot struct {
	bound  *bus.Slot
	latest atomic.Bool      // it has a connection of mode latest, as far as known
	arenas [256]atomic.Bool // arenas that messages for it came from

	mu     sync.Mutex
	newest hostabi.Message // of a latest slot, with a claim on its block; Sequence 0: none
}

// question names the row of a block on loan that somebody asks about.
type question struct {
	block  hostabi.Handle
	row    uint32
	sender uint16
}

// meters are the counters of one component.
type meters struct{ deaths, restarts, lost, rejected *stat.Counter }

func newMeters(s *stat.Registry, name string) meters {
	return meters{
		deaths:   s.Counter("process/deaths/" + name),
		restarts: s.Counter("process/restarts/" + name),
		lost:     s.Counter("process/lost_messages/" + name),
		rejected: s.Counter("process/rejected_messages/" + name),
	}
}

var (
	_ component.Component = (*proxy)(nil)
	_ component.Flowing   = (*proxy)(nil)
	_ component.Remote    = (*proxy)(nil)
)

// New returns a component that stands for an instance of one of the program's kinds. Nothing runs before its
// Start, except while its configuration is checked.
func New(ctx context.Context, r *spawn.Runtime, p spawn.Program, kind string) (component.Component, error) {
	d, err := r.Describe(ctx, p)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(d.Kinds, func(k native.Kind) bool { return k.Name == kind })
	if i < 0 {
		names := make([]string, len(d.Kinds))
		for i := range d.Kinds {
			names[i] = d.Kinds[i].Name
		}
		return nil, &spawn.Error{Code: spawn.CodeKind, Program: p.Name, Reason: fmt.Sprintf("it makes no %q", kind),
			Help: "kinds: " + strings.Join(names, ", ")}
	}
	x := &proxy{
		runtime: r, program: p.WithDefaults(), kind: d.Kinds[i], snapshot: slices.Contains(d.Capabilities, native.CapSnapshot),
		pauses: slices.Contains(d.Capabilities, native.CapPause),
		quit:   make(chan struct{}), ended: make(chan struct{}), open: map[question]hostabi.Message{},
	}
	if x.manifest, err = manifestOf(&p, x.kind); err != nil {
		return nil, err
	}
	return x, nil
}

// maxPorts bounds a manifest from outside.
const maxPorts = 256

func manifestOf(p *spawn.Program, k native.Kind) (component.Manifest, error) {
	var m component.Manifest
	for _, list := range []struct {
		from []native.Port
		to   *[]component.Port
	}{{k.Signals, &m.Signals}, {k.Slots, &m.Slots}} {
		if len(list.from) > maxPorts {
			return m, &spawn.Error{Code: spawn.CodeProtocol, Program: p.Name, Reason: fmt.Sprintf("kind %q has %d ports", k.Name, len(list.from))}
		}
		seen := map[string]bool{}
		for _, port := range list.from {
			if port.Name == "" || port.Payload == "" || seen[port.Name] {
				return m, &spawn.Error{Code: spawn.CodeProtocol, Program: p.Name,
					Reason: fmt.Sprintf("kind %q has a port %q with payload %q, twice or without a name", k.Name, port.Name, port.Payload)}
			}
			seen[port.Name] = true
			*list.to = append(*list.to, component.Port{Name: port.Name, Payload: port.Payload, Doc: port.Doc, OnLoan: port.OnLoan})
		}
	}
	return m, nil
}

// Manifest returns what the program says of its kind.
func (x *proxy) Manifest() component.Manifest { return x.manifest }

// Flow returns what the program said of its configuration; zero if nothing.
func (x *proxy) Flow() component.Flow { return x.flow }

// Configure asks the program whether the table is right.
func (x *proxy) Configure(decode func(into any) error) error {
	config := map[string]any{}
	if err := decode(&config); err != nil {
		return err
	}
	x.config = config
	answer, err := x.runtime.CheckConfig(context.Background(), x.program, native.Configuration{
		Kind: x.kind.Name, Name: x.kind.Name, Count: 1, Config: config, Lines: linesOf(config), LogLevel: "info",
	})
	if err != nil {
		return err
	}
	x.setFlow(answer.Flow)
	return configErrors(answer.Errors)
}

func (x *proxy) setFlow(f *native.Flow) {
	if f != nil {
		x.flow = component.Flow(*f)
	}
}

func configErrors(list []native.ConfigError) error {
	errs := make([]error, len(list))
	for i, e := range list {
		errs[i] = &component.ConfigError{Key: e.Key, Reason: e.Reason, Help: e.Help, Code: e.Code}
	}
	return errors.Join(errs...)
}

// linesOf writes a table as sorted lines; see native.Configuration.
func linesOf(table map[string]any) string {
	var lines []string
	appendLines(&lines, "", table)
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func appendLines(lines *[]string, prefix string, table map[string]any) {
	for key, value := range table {
		if inner, ok := value.(map[string]any); ok {
			appendLines(lines, prefix+key+".", inner)
			continue
		}
		*lines = append(*lines, prefix+key+"="+lineValue(value)+"\n")
	}
}

func lineValue(value any) string {
	switch v := value.(type) {
	case string:
		return strings.NewReplacer("\n", " ", "\r", " ").Replace(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = lineValue(v[i])
		}
		return strings.Join(items, ",")
	}
	return fmt.Sprint(value)
}

// Start starts the process for good. It blocks until the component in it has started.
func (x *proxy) Start(h *component.Host) error {
	x.h, x.meters = h, newMeters(h.Stats, h.Name)
	for i := range x.manifest.Signals {
		x.signals = append(x.signals, h.Signal(x.manifest.Signals[i].Name))
	}
	x.slots = make([]slot, len(x.manifest.Slots))
	for i, p := range x.manifest.Slots {
		x.slots[i].bound = h.Slot(p.Name, func(m *hostabi.Message) { x.send(i, m) })
	}
	x.setState(component.ProcessStarting)
	l, err := x.startSession()
	if err != nil {
		return err
	}
	x.begin(l, nil)
	go x.supervise(l)
	return nil
}

// configuration is what an instance is told at its start.
func (x *proxy) configuration(holder int) native.Configuration {
	h := x.h
	begun := h.Begun
	if x.configured && h.Again != nil {
		begun = h.Again()
	}
	x.configured = true
	c := native.Configuration{
		Kind: x.kind.Name, Name: h.Name, ID: h.ID, Index: h.Index, Count: h.Count, Holder: holder,
		Config: x.config, Lines: linesOf(x.config), LogLevel: logLevel(h.Log), Run: runOf(h.Run),
		Readers: map[string]int{}, Policies: map[string]native.Policy{}, Envs: map[string]native.EnvSpec{},
		Sources: map[string]native.EnvSource{}, FirstEnv: h.FirstEnv, Published: x.published.Load(), Begun: begun,
	}
	if h.Readers != nil {
		for _, p := range x.manifest.Signals {
			c.Readers[p.Name] = h.Readers(p.Name)
		}
	}
	if h.Tables != nil {
		t := h.Tables()
		c.Peers = maps.Clone(t.Peers)
		for name, p := range t.Policies {
			c.Policies[name] = native.Policy{Table: p.Table, Env: p.Env}
		}
		for name, spec := range t.Envs {
			c.Envs[name] = *native.EncodeSpec(&spec)
		}
		for name, s := range t.Sources {
			c.Sources[name] = native.EnvSource{
				Name: h.Name, Use: s.Use, Args: s.Args, Grants: s.Grants, Memory: uint64(s.Memory),
				StepNS: int64(s.Step), InitNS: int64(s.Init), Seed: h.Run.Seed, LogLevel: c.LogLevel,
				CompileNS: int64(s.Compile), CompileMemory: uint64(s.CompileMemory),
			}
		}
	}
	return c
}

// logLevel names the lowest level that a log takes.
func logLevel(log *slog.Logger) string {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if log.Enabled(context.Background(), level) {
			return strings.ToLower(level.String())
		}
	}
	return "error"
}

func runOf(r *component.Run) native.Run {
	doc := native.Run{
		Name: r.Name, Seed: r.Seed, Dir: r.Dir, Synchronous: r.Synchronous, Resumes: r.Resumes,
		StopWindow: r.Stop.Window, StopEnvSteps: r.Stop.EnvSteps, StopWallNS: int64(r.Stop.Wall / time.Nanosecond),
	}
	if r.Stop.HasReturn {
		doc.StopReturn = &r.Stop.Return
	}
	return doc
}

// Process returns the process that the component runs in. Any goroutine.
func (x *proxy) Process() component.Process {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := component.Process{State: x.state, Restarts: x.restarts}
	if x.session != nil && x.state == component.ProcessRunning {
		p.PID, p.Unfinished, p.Holder = x.session.process.PID(), x.session.link.Stats().Unacked, x.session.claims
	}
	return p
}

// Stop ends the process and releases everything.
func (x *proxy) Stop() error {
	x.stop.Do(func() { x.stopFn = x.finish() })
	return x.stopFn
}
