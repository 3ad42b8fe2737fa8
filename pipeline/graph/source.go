package graph

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// source is one text that keys and values come from: the file, a preset, or the --set arguments.
type source struct {
	name  string
	text  string
	order int   // of sources in one parse, for sorting
	lines []int // byte offset of the start of each line
}

func newSource(name, text string, order int) *source {
	s := &source{name: name, text: text, order: order, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// place returns line and column of a byte offset, both from 1; columns count characters.
func (s *source) place(off int) (line, column int) {
	off = min(max(off, 0), len(s.text))
	line = sort.SearchInts(s.lines, off+1)
	return line, utf8.RuneCountInString(s.text[s.lines[line-1]:off]) + 1
}

// line returns the text of a line, from 1, without its end.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	rest := s.text[s.lines[n-1]:]
	rest, _, _ = strings.Cut(rest, "\n")
	return strings.TrimSuffix(rest, "\r")
}

// Span is a part of a source. The zero Span is nowhere.
type Span struct {
	src      *source
	off, end int
}

// String returns the source and the line, such as pipeline.toml:8.
func (s Span) String() string {
	line, _ := s.src.place(s.off)
	return fmt.Sprintf("%s:%d", s.src.name, line)
}

// width is how many characters of the Span lie on its first line, at least 1.
func (s Span) width() int {
	text, _, _ := strings.Cut(s.src.text[s.off:s.end], "\n")
	return max(1, utf8.RuneCountInString(strings.TrimRight(text, "\r")))
}

// order is that of the Span's source; nowhere comes first.
func (s Span) order() int {
	if s.src == nil {
		return -1
	}
	return s.src.order
}

// bom returns the text without a byte order mark, which the decoder skips as well.
func bom(text string) string {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return rest
		}
	}
	return text
}

func isBare(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// Orders of sources, for sorting problems: the file first, then what it extends.
const (
	setOrder    = maxExtends + 1
	firstPreset = setOrder + 1
)
