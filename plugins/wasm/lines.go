package wasm

import (
	"bytes"
	"fmt"
	"sort"
	"sync"

	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

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
