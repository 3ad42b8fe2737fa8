package objects

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

// Component is an object store as a node of a pipeline: it serves during the run, and its objects end with the run. What
// reaches its slots becomes entries of one object, and its signal tells when that object has a new entry, of any writer.
type Component struct {
	config config
	server *Server
	writer *writer
	watch  *watch
}

var _ component.Component = (*Component)(nil)

type config struct {
	Name    string `toml:"name" doc:"Name under which programs find the store." default:"the component's"`
	Socket  string `toml:"socket" doc:"Socket of the store." default:"one of its name, or one for each user where it has no name"`
	Memory  int64  `toml:"memory,bytes" doc:"Most memory of all objects; 0 = the machine's."`
	Clients int    `toml:"clients" doc:"Most clients at a time." range:"1 or more"`

	Object   string `toml:"object" doc:"Object that the slots write and the signal is about."`
	Takes    string `toml:"takes" doc:"What the slots take." range:"episode, trajectory"`
	Capacity int    `toml:"capacity" doc:"Entries of that object, where the slots make it." range:"1 or more"`
}

func defaults() config {
	return config{Clients: 1024, Object: "items", Takes: component.PayloadEpisode, Capacity: 64}
}

// New returns a component that has not been configured.
func New() *Component { return &Component{config: defaults()} }

// Manifest implements component.Component.
func (c *Component) Manifest() component.Manifest {
	return component.Manifest{
		Slots: []component.Port{
			{Name: "put", Payload: c.config.Takes, Optional: true, Doc: "what becomes the newest entry, in place of the oldest where the object is full"},
			{Name: "push", Payload: c.config.Takes, Optional: true, Doc: "what becomes the newest entry, where the object is not full"},
		},
		Signals: []component.Port{{Name: "changed", Payload: component.PayloadChange, Optional: true, Doc: "the object has a new entry"}},
		Fixed:   "its clients hold the objects that it serves",
	}
}

// Configure implements component.Component.
func (c *Component) Configure(decode func(into any) error) error {
	c.config = defaults()
	if err := decode(&c.config); err != nil {
		return err
	}
	return c.config.check()
}

func (c *config) check() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)})
	}
	if _, err := wire.NamedPath(cmp.Or(c.Name, "objects")); err != nil {
		wrong("name", "is %q, want up to 64 letters, digits and . _ -", c.Name)
	}
	if c.Memory < 0 {
		wrong("memory", "is %d, want 0 or more", c.Memory)
	}
	if c.Clients < 1 {
		wrong("clients", "is %d, want 1 or more", c.Clients)
	}
	if c.Object == "" || len(c.Object) > wire.MaxName {
		wrong("object", "is %.20q, want 1 to %d bytes", c.Object, wire.MaxName)
	}
	if c.Takes != component.PayloadEpisode && c.Takes != component.PayloadTrajectory {
		wrong("takes", "is %q, want episode or trajectory", c.Takes)
	}
	if c.Capacity < 1 || c.Capacity > wire.MaxCapacity {
		wrong("capacity", "is %d, want 1 to %d", c.Capacity, wire.MaxCapacity)
	}
	return errors.Join(errs...)
}

// Start implements component.Component.
func (c *Component) Start(h *component.Host) error {
	path := c.config.Socket
	if c.config.Name == "" {
		path = cmp.Or(path, wire.DefaultPath())
	}
	server, err := Start(Options{
		Path: path, Name: cmp.Or(c.config.Name, h.Name), Sessions: c.config.Clients, Log: h.Log,
		Limits: store.Limits{Bytes: int(c.config.Memory)},
	})
	if errors.Is(err, ipc.ErrInUse) {
		return fmt.Errorf("%w: give this store a `name` of its own", err)
	}
	if err != nil {
		return err
	}
	c.server = server
	c.writer, err = newWriter(h, server.Store(), c.config)
	if err == nil {
		c.watch, err = newWatch(h, server.Store(), c.config.Object)
	}
	if err != nil {
		return errors.Join(err, c.Stop())
	}
	h.Log.Info("objects are served", "socket", server.Path())
	return nil
}

// Snapshot implements component.Component: objects belong to their users, who create them again.
func (c *Component) Snapshot() (component.State, error) { return component.State{}, nil }

// Restore implements component.Component.
func (c *Component) Restore(component.State) error { return nil }

// Stop implements component.Component.
func (c *Component) Stop() error {
	if c.server == nil {
		return nil
	}
	if c.watch != nil {
		c.watch.stop()
	}
	err := c.server.Close() // with all sessions
	c.server, c.writer, c.watch = nil, nil, nil
	return err
}
