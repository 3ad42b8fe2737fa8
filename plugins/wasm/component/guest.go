package component

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/module"

	"github.com/rlhost/rlhost/hostabi"
)

// CodeManifest is the code of a module whose manifest is not accepted.
const CodeManifest = module.CodeDescription

// maxManifest and maxState bound the manifest and the state that a guest hands over.
const (
	maxManifest = 1 << 20
	maxState    = 1 << 28
)

// component is a component in a module. Except Configure and Manifest, its methods run on the component's loop.
type component struct {
	module *guest.Module
	source Source
	lines  string // its table
	policy string // that it names, whose act requests are answered
	announced

	host *core.Host
	windows
	leased
	recovery
	blocks   tokens
	slots    []*slot
	signals  []signal
	handling *slot // whose message is being handled; nil in none
	emitted  int   // messages in this call
	answers
	asking   asking
	timers   timers
	metrics  metrics
	restarts core.Restarts
	dead     bool // the budget of restarts is spent

	faults, lost, copied *stat.Counter
}

// announced is a guest's description of itself.
type announced struct{ manifest hostabi.Manifest }

// Looks returns the columns of the manifest.
func (a *announced) Looks() []hostabi.ManifestColumn { return a.manifest.Columns }

var (
	_ core.Component  = (*component)(nil)
	_ core.Watched    = (*component)(nil)
	_ core.Pauser     = (*component)(nil)
	_ core.Holder     = (*component)(nil)
	_ core.Recovering = (*component)(nil)
)

// Manifest returns the ports of the configured component; before Configure, the ports without a table.
func (g *component) Manifest() core.Manifest {
	var m core.Manifest
	ports := func(list []hostabi.ManifestPort) (ports []core.Port) {
		for _, p := range list {
			known := core.PayloadOf(p.Payload) // the flag is of other payloads
			onLoan := known.Answers || p.Flags&hostabi.PortOnLoan != 0 && (known.Fields == "" || known.OnLoan)
			ports = append(ports, core.Port{Name: p.Name, Payload: p.Payload, Doc: p.Doc, OnLoan: onLoan, Schema: p.Schema})
		}
		return ports
	}
	m.Signals, m.Slots, m.Requests = ports(g.manifest.Signals), ports(g.manifest.Slots), g.manifest.Requests
	m.Asks = g.manifest.Asks
	return m
}

// Configure asks an instance of the module, which it then drops, whether the table is right, and for the ports.
func (g *component) Configure(decode func(into any) error) error {
	values := map[string]any{}
	if err := decode(&values); err != nil {
		return err
	}
	g.lines = table.Lines(values)
	g.policy, _ = values["policy"].(string)
	asked, err := newInstance(g.module, instanceOptions{name: g.source.Name})
	if err != nil {
		return err
	}
	err = g.ask(asked)
	return errors.Join(err, asked.Close())
}

// describeHost describes this host to a guest that asks.
func describeHost(run *instance) error {
	if !run.Has(hostabi.ExportHost) {
		return nil
	}
	own := hostabi.HostDesc{Size: hostabi.HostBytes, ABIMajor: hostabi.ComponentABI.Major, ABIMinor: hostabi.ComponentABI.Minor,
		MaxBlockBytes: trajectory.MaxBlockBytes}
	b, _ := binary.Append(nil, binary.LittleEndian, &own) // a struct of fixed size always fits
	at, err := put(run, b)
	if err != nil {
		return err
	}
	if err := run.Do(hostabi.ExportHost, uint64(at), uint64(len(b))); err != nil {
		return err
	}
	return run.Free(at, uint32(len(b)))
}

// ask configures an instance and reads its manifest.
func (g *component) ask(run *instance) error {
	if err := describeHost(run); err != nil {
		return err
	}
	if err := g.configure(run); err != nil {
		return err
	}
	text, err := g.written(run, hostabi.ExportManifest, maxManifest)
	if err != nil {
		return err
	}
	g.manifest, err = hostabi.ParseManifest(text)
	switch {
	case err != nil:
	case len(g.manifest.Requests) > 0 && !run.Has(hostabi.ExportRequest):
		err = fmt.Errorf("it has requests and does not export %s", hostabi.ExportRequest)
	case len(g.manifest.Asks) > 0 && !run.Has(hostabi.ExportAnswer):
		err = fmt.Errorf("it asks others and does not export %s", hostabi.ExportAnswer)
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), hostabi.ErrManifest.Error()+": ")
		if errors.Is(err, hostabi.ErrTooOld) {
			return &table.Error{Code: module.CodeFuture, Place: g.source.Use, Reason: fmt.Sprintf("needs a later host than this rlhost, which speaks ABI %v: %s", hostabi.ComponentABI, reason),
				Help: fmt.Sprintf("update rlhost, or build the guest for ABI %v", hostabi.ComponentABI), Err: err}
		}
		return &table.Error{Code: CodeManifest, Place: g.source.Use, Reason: "describes itself wrongly: " + reason,
			Help: "correct what the guest's rl_manifest writes", Err: err}
	}
	return nil
}

// configure calls rl_configure. The guest's refusals become errors of keys.
func (g *component) configure(run *instance) error {
	lines := g.lines
	at, err := put(run, []byte(lines))
	if err != nil {
		return err
	}
	err = run.Do(hostabi.ExportConfigure, uint64(at), uint64(len(lines)))
	var refused *statusError
	if errors.As(err, &refused) && refused.status == hostabi.StatusConfig {
		return configErrors(g.source.Use, refused.words)
	}
	if err != nil || len(lines) == 0 {
		return err
	}
	return run.Free(at, uint32(len(lines)))
}

// configErrors makes errors of lines "key: reason", each followed by a line that begins with two spaces and says what to write
// instead; a line without a key is about the table. use is the path of the module.
func configErrors(use, words string) error {
	var errs []error
	for line := range strings.Lines(words) {
		if last := len(errs) - 1; last >= 0 && strings.HasPrefix(line, "  ") {
			var e *core.ConfigError
			if errors.As(errs[last], &e) {
				e.Help = strings.TrimSpace(line)
			}
			continue
		}
		key, reason, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.ContainsAny(key, " \t") {
			errs = append(errs, fmt.Errorf("refused by %s: %s", use, strings.TrimSpace(line)))
			continue
		}
		errs = append(errs, &core.ConfigError{Key: key, Reason: reason})
	}
	if len(errs) == 0 {
		return fmt.Errorf("refused by %s, without a reason", use)
	}
	return errors.Join(errs...)
}

// put puts bytes into memory of the guest's; at is 0 if there are none.
func put(run *instance, b []byte) (at uint32, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if at, err = run.Allocate(uint32(len(b)), 16); err == nil {
		copy(run.View(at, uint32(len(b))), b)
	}
	return at, err
}

// written returns the output of an export of the kind "needed length".
func (g *component) written(run *instance, export string, most uint32) ([]byte, error) {
	n, err := run.Call(export, 0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("%s: %s needs %d bytes, at most %d", g.source.Use, export, n, most)
	}
	at, err := run.Allocate(n, 16)
	if err != nil {
		return nil, err
	}
	wrote, err := run.Call(export, uint64(at), uint64(n))
	if err != nil {
		return nil, err
	}
	b := slices.Clone(run.View(at, n))
	if err := run.Free(at, n); err != nil {
		return nil, err
	}
	if wrote != n {
		return nil, fmt.Errorf("%s: %s needs %d bytes at first and %d then", g.source.Use, export, n, wrote)
	}
	return b, nil
}

// Start makes the instance that runs, binds its slots and calls rl_start.
func (g *component) Start(h *core.Host) error {
	g.host = h
	counter := func(name string) *stat.Counter { return h.Stats.Counter(h.Name + "/" + name) }
	g.faults, g.lost, g.copied = counter("faults"), counter("lost_messages"), counter("copied_bytes")
	run, err := newInstance(g.module, instanceOptions{name: h.Name, log: h.Log, seed: env.Seed(h.Run.Seed, h.Index), services: services{g}})
	if err != nil {
		return err
	}
	g.leased.arenas = h.Arenas
	g.windows = windows{run: run, arenas: h.Arenas, remapped: counter("remapped_windows")}
	g.blocks = tokens{arenas: h.Arenas, leased: &g.leased, most: cmp.Or(g.source.Leases, DefaultLeases), returned: counter("returned_leases")}
	if err := g.ask(g.run); err != nil {
		return err
	}
	for _, p := range g.manifest.Signals {
		g.signals = append(g.signals, newSignal(h.Signal(p.Name), p.Payload))
	}
	for i := range g.manifest.Slots {
		s, err := g.newSlot(i)
		if err != nil {
			return err
		}
		g.slots = append(g.slots, s)
	}
	for i := range g.manifest.Requests {
		h.Handle(g.manifest.Requests[i].Name, g.handler(i))
	}
	g.asking.begun, g.asking.of = true, g.manifest.Asks
	if err := g.introduce(); err != nil {
		return err
	}
	g.save()
	return nil
}

// introduce calls rl_start.
func (g *component) introduce() error {
	h := g.host
	g.emitted = 0
	id := hostabi.Identity{Index: uint32(h.Index), Count: uint32(h.Count), Seed: h.Run.Seed}
	if h.Run.Synchronous {
		id.Synchronous = 1
	}
	return introduce(g.run, id, h.Name)
}

// introduce gives a guest its identity.
func introduce(run *instance, id hostabi.Identity, name string) error {
	id.Size, id.NameAt, id.NameLen = hostabi.IdentityBytes, hostabi.IdentityBytes, uint32(len(name))
	b, _ := binary.Append(nil, binary.LittleEndian, &id) // a struct of fixed size always fits
	b = append(b, name...)
	at, err := put(run, b)
	if err != nil {
		return err
	}
	if err := run.Do(hostabi.ExportStartUp, uint64(at), uint64(len(b))); err != nil {
		return err
	}
	return run.Free(at, uint32(len(b)))
}

// call calls an export that may emit messages.
func (g *component) call(export string, args ...uint64) error {
	g.keep()
	g.emitted = 0
	return g.run.Do(export, args...)
}

// Snapshot returns the output of rl_snapshot. A guest that faults in it continues from the state before. There is no state while
// blocks are leased, even of a guest that says that it has none: a run that continued from it would lack the blocks.
func (g *component) Snapshot() (core.State, error) {
	switch {
	case g.dead:
		return core.State{}, fmt.Errorf("%w: %s has failed", core.ErrNoSnapshot, g.source.Use)
	case g.blocks.leases > 0:
		return core.State{}, fmt.Errorf("%w: %s keeps blocks (%d), which are no part of a state", core.ErrNoSnapshot, g.source.Use, g.blocks.leases)
	case g.manifest.Flags&hostabi.ComponentStateless != 0:
		return core.State{}, nil
	case !g.run.Has(hostabi.ExportSnapshot):
		return core.State{}, fmt.Errorf("%w: %s exports no %s", core.ErrNoSnapshot, g.source.Use, hostabi.ExportSnapshot)
	}
	g.keep()
	g.emitted = 0
	b, err := g.written(g.run, hostabi.ExportSnapshot, maxState)
	if err != nil {
		g.faulted(err)
		return core.State{}, err
	}
	g.unsaved.Store(true)
	return core.State{Blobs: map[string][]byte{core.OpaqueBlob: b}}, nil
}

// Restore gives the guest a state.
func (g *component) Restore(s core.State) error {
	b := s.Blobs[core.OpaqueBlob]
	if len(b) == 0 {
		return nil
	}
	if !g.run.Has(hostabi.ExportRestore) {
		return fmt.Errorf("%s exports no %s and cannot take a state of %d bytes", g.source.Use, hostabi.ExportRestore, len(b))
	}
	at, err := put(g.run, b)
	if err != nil {
		return err
	}
	if err := g.call(hostabi.ExportRestore, uint64(at), uint64(len(b))); err != nil {
		return err
	}
	if err := g.run.Free(at, uint32(len(b))); err != nil {
		return err
	}
	g.save()
	return nil
}

// Pause calls rl_pause: the guest has paused when it returns.
func (g *component) Pause(rested func()) {
	g.at(hostabi.ExportPause)
	rested()
}

// Resume calls rl_resume.
func (g *component) Resume() { g.at(hostabi.ExportResume) }

// Waiting returns nothing: a guest handles each message before the next.
func (g *component) Waiting() []core.Waiting { return nil }

// at calls an export without parameters, if there is one.
func (g *component) at(export string) {
	if g.dead || !g.run.Has(export) {
		return
	}
	if err := g.call(export); err != nil {
		g.failed(err)
	}
}

// Stop ends the guest and takes back its leases.
func (g *component) Stop() error {
	if g.run == nil { // before Start
		return nil
	}
	g.unsaved.Store(false) // a fault goes back to nothing any more
	if !g.dead && g.run.Has(hostabi.ExportStop) && g.saved != nil {
		if err := g.call(hostabi.ExportStop); err != nil {
			g.host.Log.Warn("component did not stop by itself", "error", err)
		}
	}
	g.timers.stop()
	err := errors.Join(g.blocks.releaseAll(), g.run.Close())
	g.run = nil
	return err
}
