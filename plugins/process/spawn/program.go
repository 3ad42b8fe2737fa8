package spawn

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/place"
)

// Limits that hold where a Program does not set its own.
const (
	DefaultStart    = 30 * time.Second
	DefaultStall    = 30 * time.Second
	DefaultSnapshot = 5 * time.Second
	DefaultGrace    = 5 * time.Second
	DefaultRestarts = 10
	DefaultMemory   = 1 << 30

	DefaultRestartWindow = 10 * time.Minute
)

// Backoff says how long a process that has died is not started again.
type Backoff struct {
	First   time.Duration // before the first restart in a row; then twice as long each time
	Longest time.Duration
	Healthy time.Duration // a process that lived so long ends the row
}

// DefaultBackoff holds where a Program does not set its own.
func DefaultBackoff() Backoff {
	return Backoff{First: 100 * time.Millisecond, Longest: 5 * time.Second, Healthy: time.Minute}
}

// Program says which program a plugin is and how it is run.
type Program struct {
	Name string // in the pipeline file, for messages
	Path string // of the executable, or of the script that Interpreter runs
	// Interpreter runs Path, such as python3 -u; empty if Path is an executable.
	Interpreter []string
	Args        []string // after Path
	// SHA256 of the file Path, hexadecimal; empty = any. It is checked before each start. Anyone who can write to the file
	// between the check and the start can still run something else, and only a script's file itself is checked, not its imports:
	// the sum distinguishes a wrong build from the right one; it does not stop an attacker who can write to the plugin's folder.
	SHA256 string
	// Env names variables of the host's environment that the program gets, in addition to PATH, HOME, LANG, TMPDIR
	// and go-plugin's. It gets no others.
	Env []string
	// Restarts is how often the program may be started again within RestartWindow before the run fails; 0 =
	// DefaultRestarts, below 0 = never.
	Restarts int
	// RestartWindow is how long a restart counts; 0 = DefaultRestartWindow, below 0 = for ever.
	RestartWindow time.Duration
	Backoff       Backoff // pauses before restarts; zero = DefaultBackoff
	// Stall is how long work may wait for the program without any progress before it is killed and started again;
	// 0 = DefaultStall, below 0 = for ever. A program that a debugger is attached to may take any time.
	Stall time.Duration
	Start time.Duration // how long it may take until it answers; 0 = DefaultStart
	// Snapshot is how old the state may become that a learner continues from when its process has died: it is taken
	// at dataset boundaries, if the last one is older. 0 = DefaultSnapshot, below 0 = take none.
	Snapshot time.Duration
	Memory   int64       // bytes that the arenas of one component may take together; 0 = DefaultMemory
	Place    place.Place // where it runs on this machine
	Dir      string      // its working folder; empty = the host's
}

// String returns name and command line, for messages.
func (p *Program) String() string {
	words := append(append([]string{}, p.Interpreter...), p.Path)
	return fmt.Sprintf("plugin %q (%s)", p.Name, strings.Join(append(words, p.Args...), " "))
}

// WithDefaults returns the program with defaults filled in.
func (p Program) WithDefaults() Program {
	if p.Start <= 0 {
		p.Start = DefaultStart
	}
	p.Stall = cmp.Or(p.Stall, DefaultStall)
	p.Snapshot = cmp.Or(p.Snapshot, DefaultSnapshot)
	p.Restarts = cmp.Or(p.Restarts, DefaultRestarts)
	p.RestartWindow = cmp.Or(p.RestartWindow, DefaultRestartWindow)
	p.Backoff = cmp.Or(p.Backoff, DefaultBackoff())
	p.Memory = cmp.Or(p.Memory, DefaultMemory)
	return p
}
