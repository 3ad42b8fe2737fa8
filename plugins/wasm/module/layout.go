package module

import (
	"bytes"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/ianlancetaylor/demangle"

	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// Layout is a module's information about itself, for messages and checks.
type Layout struct {
	imports  int               // functions that it imports
	names    map[uint32]string // of functions, as they stand in it
	lines    *lines            // nil if it has no source lines
	Stack    meter.Stack
	DataLow  uint32 // lowest address of its data
	DataHigh uint64 // where its data ends
}

func layoutOf(m *meter.Module, r *meter.Result) Layout {
	low, high := m.DataRange()
	return Layout{imports: m.ImportedFunctions(), names: m.Names, lines: linesOf(m, r), Stack: m.Stack(), DataLow: low, DataHigh: uint64(high)}
}

// lines finds the source line of an instruction of a running module.
type lines struct {
	table []byte // nil once it has been read
	moved []meter.Moved

	once   sync.Once
	source *meter.SourceLines
}

// linesOf returns the lines of a module, or nil if it has none.
func linesOf(m *meter.Module, r *meter.Result) *lines {
	if len(r.Moved) == 0 {
		return nil
	}
	return &lines{table: bytes.Clone(m.Lines), moved: r.Moved}
}

// at returns file and line of an offset in the rewritten code section, or "". The file's name comes from the guest.
func (l *lines) at(offset uint32) string {
	l.once.Do(func() { l.source, l.table = meter.ReadLines(l.table), nil })
	k := sort.Search(len(l.moved), func(i int) bool { return l.moved[i].New > offset }) - 1
	if k < 0 {
		return ""
	}
	file, line, ok := l.source.At(l.moved[k].Old)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// Place returns the name of a function of the rewritten module, by its index there, and the line of the instruction at an offset of its code;
// empty where the module has no lines. A function without a name has the one under which it is exported.
func (l *Layout) Place(function uint32, offset uint64, export string) (name, line string) {
	if int(function) > l.imports { // the host's own import comes last, which the guest's author does not count
		function--
	}
	if l.lines != nil {
		line = l.lines.at(uint32(offset))
	}
	if l.names[function] == "" && export != "" {
		return export, line
	}
	return l.FunctionName(function), line
}

// FunctionName returns the name of a function as its author wrote it, by its index in the module.
func (l *Layout) FunctionName(index uint32) string {
	if name := l.names[index]; name != "" {
		return readable(name)
	}
	return fmt.Sprintf("function %d", index)
}

// readable undoes the mangling of C++ and Rust. Names of other languages do not change; they are quoted where they cannot be shown.
func readable(name string) string {
	name = demangle.Filter(name, demangle.NoParams)
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// maxFrames is how much of a call stack a message shows.
const maxFrames = 8

// stackLine is a guest's function in wazero's stack trace: its name and its signature. The module has no name.
var stackLine = regexp.MustCompile(`^\.(.+)\([a-z0-9,]*\)(?: (?:[a-z0-9]+|\([a-z0-9,]*\)))?$`)

// TrapReason makes one line of wazero's message: the reason and the guest's functions, the innermost first.
func (l *Layout) TrapReason(err error) string {
	text := strings.TrimPrefix(err.Error(), "wasm error: ")
	reason, trace, _ := strings.Cut(text, "\n")
	reason = strings.TrimSuffix(reason, " (recovered by wazero)")
	frames := l.frames(trace)
	if len(frames) == 0 {
		return reason
	}
	reason += " in " + ofSDK(frames[0])
	if callers := frames[1:]; len(callers) > 0 {
		reason += ", called by " + strings.Join(callers, ", ")
	}
	return reason
}

// inSDK is the place of a frame in a header of the SDK for C.
var inSDK = regexp.MustCompile(`\((rl_[a-z]+\.h:[0-9]+)\)$`)

// ofSDK adds to a frame in the SDK that the line is not the author's.
func ofSDK(frame string) string {
	return inSDK.ReplaceAllString(frame, "($1, a line of the SDK, into which your own function may be inlined)")
}

// sourceLine is what wazero adds to a frame of a module with DWARF: the offset of the instruction.
var sourceLine = regexp.MustCompile(`^0x([0-9a-f]+): `)

// frames returns the names of the guest's functions in a trace, with their lines where the module has them. Recursion
// is shown once. Callers without name and line are left out: their numbers help nobody.
func (l *Layout) frames(trace string) []string {
	type frame struct {
		text     string
		nameless bool
	}
	var all []frame
	last, before := "", "" // function whose line may follow, function of the newest frame
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		if at := sourceLine.FindStringSubmatch(line); at != nil && last != "" && l.lines != nil {
			offset, _ := strconv.ParseUint(at[1], 16, 32)
			if place := l.lines.at(uint32(offset)); place != "" {
				all[len(all)-1] = frame{text: fmt.Sprintf("%s (%s)", last, place)}
			}
			last = ""
		}
		found := stackLine.FindStringSubmatch(line)
		if found == nil {
			continue // a heading, or a host function
		}
		name, nameless := readable(found[1]), false
		// The host's own import comes last, which the guest's author does not count.
		if n, err := strconv.Atoi(strings.TrimPrefix(found[1], "$")); err == nil && n > l.imports {
			name, nameless = l.FunctionName(uint32(n-1)), l.names[uint32(n-1)] == ""
		}
		if name == before {
			last = ""
			continue
		}
		all = append(all, frame{name, nameless})
		last, before = name, name
	}
	var frames []string
	for k, f := range all {
		if k > 0 && f.nameless {
			continue
		}
		if len(frames) == maxFrames {
			return append(frames, "…")
		}
		frames = append(frames, f.text)
	}
	return frames
}
