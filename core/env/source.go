package env

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/table"
)

// Source says what an environment is loaded from and how it is run: an [env.NAME] table. The same struct is what a
// pipeline file says, what the graph holds, and what processes that load environments are told, as JSON.
type Source struct {
	Name string `json:"name"` // of the environment, or of who runs it; for messages

	// Use is the name@version of a built-in environment, the path of a module, or what a native plugin takes.
	Use       string            `toml:"use" json:"use"`
	Isolation string            `toml:"isolation" json:"-"` // of a module: InHost or InProcess
	Workers   int               `toml:"workers" json:"-"`   // processes for each batch of environments, where they are processes
	Args      map[string]string `toml:"args" json:"args"`   // the environment's own configuration, by dotted key
	Limits    `toml:"limits"`
	Grants    []string `toml:"grants" json:"grants"` // imports and capabilities that a module may use
	SHA256    string   `toml:"sha256" json:"-"`      // of the file, hexadecimal; empty if any will do
	// Wrap lists the wrappers around the environments, the innermost first.
	Wrap []Wrapper `toml:"wrap" json:"wrap,omitempty"`
}

// Wrapper is one wrapper of a list: its name with its value, as plain maps, lists and scalars.
type Wrapper map[string]any

// Rewrapped returns the list of wrappers as TOML with another table, given as TOML, at one place, and the table that stands there now. ok
// is false for a place that the list does not have.
func (s *Source) Rewrapped(at int, wrapper string) (list, was string, ok bool) {
	tables := make([]string, len(s.Wrap))
	for i, w := range s.Wrap {
		tables[i] = table.EncodeValue(map[string]any(w))
	}
	if at < 0 || at >= len(tables) {
		return "", "", false
	}
	was, tables[at] = tables[at], wrapper
	return "[" + strings.Join(tables, ", ") + "]", was, true
}

// UnmarshalJSON keeps numbers as they are written, so that integers stay integers.
func (w *Wrapper) UnmarshalJSON(doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode((*map[string]any)(w))
}

// Limits bound an environment; zero means the runtime's default.
type Limits struct {
	Memory uint64        `toml:"memory,bytes" json:"memory"` // of each instance, what is shared with the host included
	Step   time.Duration `toml:"step" json:"step_ns"`        // of one call that steps all environments of an instance
	Init   time.Duration `toml:"init" json:"init_ns"`        // of each call that comes before

	Compile       time.Duration `toml:"compile" json:"compile_ns,omitempty"` // of a module
	CompileMemory uint64        `toml:"compile_memory,bytes" json:"compile_memory,omitempty"`
}

// Where the environments of a module run.
const (
	InHost    = "host"
	InProcess = "process"
)

// DefaultSource returns a table with the defaults of [env.NAME].
func DefaultSource() Source { return Source{Isolation: InHost, Workers: 1} }
