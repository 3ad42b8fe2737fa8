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

// Component is an object store as a node of a pipeline: it serves during the run, and its objects end with the run. It
// has no signals and no slots.
type Component struct {
	config config
	server *Server
}

var _ component.Component = (*Component)(nil)

type config struct {
	Name    string `toml:"name" doc:"Name under which programs find the store." default:"the component's"`
	Socket  string `toml:"socket" doc:"Socket of the store." default:"one of its name, or one for each user where it has no name"`
	Memory  int64  `toml:"memory,bytes" doc:"Most memory of all objects; 0 = the machine's."`
	Clients int    `toml:"clients" doc:"Most clients at a time." range:"1 or more"`
}

// New returns a component that has not been configured.
func New() *Component { return &Component{} }

// Manifest implements component.Component.
func (c *Component) Manifest() component.Manifest {
	return component.Manifest{Fixed: "its clients hold the objects that it serves"}
}

// Configure implements component.Component.
func (c *Component) Configure(decode func(into any) error) error {
	c.config = config{Clients: 1024}
	if err := decode(&c.config); err != nil {
		return err
	}
	var errs []error
	if _, err := wire.NamedPath(cmp.Or(c.config.Name, "objects")); err != nil {
		errs = append(errs, &component.ConfigError{Key: "name", Reason: fmt.Sprintf("is %q, want up to 64 letters, digits and . _ -", c.config.Name)})
	}
	if c.config.Memory < 0 {
		errs = append(errs, &component.ConfigError{Key: "memory", Reason: fmt.Sprintf("is %d, want 0 or more", c.config.Memory)})
	}
	if c.config.Clients < 1 {
		errs = append(errs, &component.ConfigError{Key: "clients", Reason: fmt.Sprintf("is %d, want 1 or more", c.config.Clients)})
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
	err := c.server.Close()
	c.server = nil
	return err
}
