package spawn

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

var (
	colours   = regexp.MustCompile("\x1b\\[[0-9;]*m")
	warning   = regexp.MustCompile(`^\S.*:\d+: \w*Warning: `)
	frame     = regexp.MustCompile(`^  File "(.+)", line (\d+) in (\S+)$`)
	installed = regexp.MustCompile(`/(site|dist)-packages/|/lib/python3|^<|/rlhost/(gymnasium|pettingzoo|serving|host|component)\b`)
)

const (
	fatal = "Fatal Python error: "
	// maxSaid bounds what is remembered of warnings.
	maxSaid = 1024
)

// said has the warnings that processes of one runtime have printed: each process of a run would say the same.
type said struct {
	mu    sync.Mutex
	lines map[string]struct{}
}

// again notes a line and reports whether it was said before.
func (s *said) again(line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.lines[line]; known || len(s.lines) == maxSaid {
		return known
	}
	if s.lines == nil {
		s.lines = map[string]struct{}{}
	}
	s.lines[line] = struct{}{}
	return false
}

// repeats reports whether a line is left out of the log: a warning of Python that another process has printed, a line that says it is wanted
// once, or the source that Python prints under its warnings.
func (o *output) repeats(text string, once bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	source := o.warns && strings.HasPrefix(text, "  ")
	o.warns = warning.MatchString(text)
	return source || (once || o.warns) && o.said.again(text)
}

// fault is what Python prints when it is killed by a signal: what happened, then the frames of its threads, the innermost first.
type fault struct {
	what  string
	first string // frame
	own   string // the first frame that is not of an installed package
}

func (f *fault) read(line string) {
	if what, found := strings.CutPrefix(line, fatal); found {
		*f = fault{what: what}
		return
	}
	m := frame.FindStringSubmatch(line)
	if m == nil || f.what == "" {
		return
	}
	at := fmt.Sprintf("%s, %s:%s", m[3], filepath.Base(m[1]), m[2])
	if f.first == "" {
		f.first = at
	}
	if f.own == "" && !installed.MatchString(m[1]) {
		f.own = at
	}
}

func (f *fault) where() string {
	if f.own != "" {
		return f.own
	}
	return f.first
}

// String is empty where there was no fault.
func (f *fault) String() string {
	if at := f.where(); at != "" {
		return f.what + " in " + at
	}
	return f.what
}
