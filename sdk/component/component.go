package component

import "fmt"

// Component is one node of a pipeline. The host calls Configure and Manifest, Start, perhaps Restore, and then slots,
// timers and Snapshot, one at a time; Stop comes last, also after a failed Start. A panic ends the component.
type Component interface {
	// Manifest returns the signals and slots of the configured component; before Configure, of its defaults.
	Manifest() Manifest
	// Configure decodes the component's table into a struct, whose fields are named by tags such as `toml:"scale"` and hold
	// the defaults, and checks it. The error is one or several joined *ConfigError, or what decode returned. It takes no
	// resources, and may be the only call that a component ever gets.
	Configure(decode func(into any) error) error
	// Start takes resources and binds every slot of the manifest. Messages arrive after it.
	Start(h Host) error
	// Snapshot returns the state that Restore needs to continue as if nothing had happened.
	Snapshot() ([]byte, error)
	// Restore replaces the state by a snapshot of a component with the same configuration.
	Restore(state []byte) error
	// Stop releases the component's resources, except leases and loans, which the host takes back.
	Stop() error
}

// Pauser is optional, for a component that has something under way between two calls.
type Pauser interface {
	// Pause is called before the component is saved while paused, or replaced: it finishes its work under way and begins nothing new.
	// No slot is called until Resume.
	Pause() error
	// Resume ends a pause.
	Resume() error
}

// Manifest lists the ports, in a fixed order, the requests that the component answers, and the questions that it asks other components.
type Manifest struct {
	Signals, Slots []Port
	Requests       []Request
	Asks           []Request
}

// Port is a signal or a slot. A signal connects to slots of an equal payload.
type Port struct {
	Name    string // snake_case
	Payload string // such as trajectory, or a new name
	Doc     string // one sentence
	// Schema must be equal for sender and receiver of the payload; it is for example the beginning of a hash of the payload's
	// description. 0 means the host's schema or, for a payload that the host does not know, any.
	Schema uint64
}

// ConfigError is a mistake in one key of a component's table. The host adds file, line and column.
type ConfigError struct {
	Key    string
	Reason string // such as "is -1, want 0 or more"
	Help   string // what to write instead; may be empty
}

// Error names the key and the reason.
func (e *ConfigError) Error() string { return fmt.Sprintf("`%s` %s", e.Key, e.Reason) }

// Stateless is embedded by components with nothing to save and nothing to release.
type Stateless struct{}

// Snapshot returns an empty state.
func (Stateless) Snapshot() ([]byte, error) { return nil, nil }

// Restore has nothing to restore.
func (Stateless) Restore([]byte) error { return nil }

// Stop has nothing to release.
func (Stateless) Stop() error { return nil }
