package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/link/transports"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi/native"
)

// sdkName names the SDK and its version to the host.
const sdkName = "go 1.0"

// server is the plugin's end of all connections. Control calls run on their own goroutines, one after the other
// unless one hangs; frames on the goroutine of readWire; messages on the loop of the instance.
type server struct {
	plugin    Plugin
	kinds     map[string]func() component.Component
	transport link.Transport
	wire      *shm.Socket
	envs      *envs
	arenas    *arenas
	log       *slog.Logger
	level     slog.LevelVar
	exit      func(status int) // os.Exit, but for tests

	mu       sync.Mutex // one call at a time
	instance *instance  // guarded by mu; nil before Configure and after Stop

	asked atomic.Pointer[instance] // the started one, for requests
}

// newServer opens the inherited files.
func newServer(p Plugin) (*server, error) {
	wire, err := shm.NewSocket(os.NewFile(native.FDWire, "wire"))
	if err != nil {
		return nil, err
	}
	transport, err := openTransport()
	if err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	return makeServer(p, transport, wire), nil
}

// openTransport opens this end of the transport that the host has named.
func openTransport() (link.Transport, error) {
	t, err := transports.Named(transportName())
	if err != nil {
		return nil, err
	}
	return t.Open(native.FDTransport)
}

func transportName() string { return cmp.Or(os.Getenv(native.TransportKey), native.TransportRings) }

func makeServer(p Plugin, transport link.Transport, wire *shm.Socket) *server {
	s := &server{plugin: p, kinds: p.kinds(), transport: transport, wire: wire, exit: os.Exit}
	s.log = newLogger(os.Stderr, &s.level)
	s.envs = newEnvs(p.Load, transport, s.send, s.log)
	s.arenas = newArenas(s.send)
	return s
}

// close stops the component and the environments, if the host has not.
func (s *server) close() {
	if err := errors.Join(s.stop(), s.envs.stop()); err != nil {
		s.log.Error("stop", "error", err)
	}
}

// describe returns the plugin's description.
func (s *server) describe() native.Description {
	d := native.Description{ABI: native.ABI, SDK: sdkName, Transport: transportName(), Capabilities: []string{}, Kinds: []native.Kind{}}
	if len(s.kinds) > 0 {
		d.Capabilities = append(d.Capabilities, native.CapSnapshot, native.CapPause, native.CapCut)
	}
	if s.plugin.Load != nil {
		d.Capabilities = append(d.Capabilities, native.CapEnv, native.CapEnvState)
	}
	for name, make := range s.kinds {
		m := make().Manifest()
		d.Kinds = append(d.Kinds, native.Kind{
			Name: name, Doc: s.plugin.Docs[name], Signals: ports(m.Signals), Slots: ports(m.Slots), Requests: m.Requests, Asks: m.Asks,
		})
	}
	slices.SortFunc(d.Kinds, func(a, b native.Kind) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

func ports(list []component.Port) []native.Port {
	docs := make([]native.Port, len(list))
	for i, p := range list {
		schema := p.Schema
		if component.PayloadOf(p.Payload).Own {
			schema = p.Agreed() // of the release that the plugin is built with
		}
		docs[i] = native.Port{Name: p.Name, Payload: p.Payload, Doc: p.Doc, OnLoan: p.OnLoan, Schema: native.U64(schema)}
	}
	return docs
}

// configure makes a component and reads its table.
func (s *server) configure(c native.Configuration) (native.Configured, error) {
	make := s.kinds[c.Kind]
	if make == nil {
		return native.Configured{}, refuse(native.CodeInvalid, "this plugin has no kind %q", c.Kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance != nil && !c.CheckOnly {
		return native.Configured{}, refuse(native.CodeOrder, "a component is configured already")
	}
	if level, ok := parseLevel(c.LogLevel); ok {
		s.level.Set(level)
	}
	comp := make()
	err := comp.Configure(tableOf(c.Config))
	if err != nil {
		return native.Configured{Errors: configErrors(err)}, nil
	}
	m := comp.Manifest()
	answer := native.Configured{Errors: []native.ConfigError{}, Flow: flowOf(comp), Signals: ports(m.Signals), Slots: ports(m.Slots), Requests: m.Requests, Asks: m.Asks}
	if c.CheckOnly {
		return answer, nil
	}
	s.instance, err = newInstance(s, comp, m, c)
	return answer, err
}

func flowOf(c component.Component) *native.Flow {
	x, ok := c.(component.Flowing)
	if !ok {
		return nil
	}
	f := native.Flow(x.Flow())
	return &f
}

// start starts the component.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance == nil || s.instance.started {
		return refuse(native.CodeOrder, "Start comes once, after Configure")
	}
	if err := s.instance.start(); err != nil {
		return err
	}
	s.asked.Store(s.instance)
	return nil
}

// snapshot sends the component's state on the wire.
func (s *server) snapshot() (native.StateSize, error) {
	x, err := s.running()
	if err != nil {
		return native.StateSize{}, err
	}
	var state component.State
	if err := x.do(func() (err error) {
		x.link.Acknowledge() // the messages in the state are finished
		state, err = x.component.Snapshot()
		return err
	}); err != nil {
		return native.StateSize{}, err
	}
	x.stats.send()
	b, err := component.EncodeState(state)
	if err != nil {
		return native.StateSize{}, err
	}
	return s.envs.sendState(b)
}

// restore takes the state from the wire.
func (s *server) restore(size native.StateSize) (native.Empty, error) {
	none := native.Empty{}
	x, err := s.running()
	if err != nil {
		return none, err
	}
	b, err := s.envs.stateOf(native.EnvStateCall{State: &size})
	if err != nil {
		return none, err
	}
	state, err := component.DecodeState(b)
	if err != nil {
		return none, err
	}
	return none, x.do(func() error { return x.component.Restore(state) })
}

// cut has the component give up its current message, from outside its loop.
func (s *server) cut() (native.Empty, error) {
	s.mu.Lock() // the component may not be stopped meanwhile
	defer s.mu.Unlock()
	x, err := s.runningNow()
	if err != nil {
		return native.Empty{}, err
	}
	c, ok := x.component.(component.Cuttable)
	if !ok {
		return native.Empty{}, refuse(native.CodeUnsupported, "kind %s cannot give up what it is at", x.told.Kind)
	}
	c.Cut()
	return native.Empty{}, nil
}

// running returns the started component.
func (s *server) running() (*instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runningNow()
}

// runningNow is running of a caller that holds mu.
func (s *server) runningNow() (*instance, error) {
	if s.instance == nil || !s.instance.started {
		return nil, refuse(native.CodeOrder, "no component is started")
	}
	return s.instance, nil
}

// stop ends the component. What leaked is an error. Without a component it does nothing.
func (s *server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.instance
	if x == nil {
		return nil
	}
	s.instance = nil
	s.asked.Store(nil)
	return x.stop()
}

// send sends a frame to the host.
func (s *server) send(f native.Frame, files ...int) error {
	doc, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	return s.wire.Send(doc, files...)
}
