package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// MaxBytes bounds a pipeline file, which has a few kilobytes. Parse refuses a longer one.
const MaxBytes = 64 << 10

// Bounds on how many problems of one kind are reported.
const (
	maxDuplicates = 20
	maxSyntax     = 10
)

// read decodes a source into nodes. It notes E001 and E006; the result is nil if the syntax is broken.
func (r *Report) read(src *source) *node {
	if len(src.text) > MaxBytes {
		r.Add("E001", Span{src, 0, 0}, "", "file has %d bytes, at most %d", len(src.text), MaxBytes)
		return nil
	}
	for text := src.text; ; {
		var values map[string]any
		_, err := decode(text, &values)
		if err == nil {
			return r.index(src, text, values)
		}
		rest, found := r.duplicates(src, text, err)
		if !found {
			r.syntax(src, text, err)
			return nil
		}
		if rest == "" {
			return nil
		}
		text = rest
	}
}

// deepError says where a text is nested too deep.
type deepError struct{ off int }

func (e *deepError) Error() string { return errDeep.Error() }

// decode is toml.Decode without its panics, which malformed texts can cause, and without its excessive time on
// deeply nested ones.
func decode(text string, into any) (md toml.MetaData, err error) {
	if s, err := scan(newSource("", text, 0)); errors.Is(err, errDeep) {
		return md, &deepError{s.i}
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cannot be decoded: %v", v)
		}
	}()
	return toml.Decode(text, into)
}

// index pairs the decoder's values with the scanner's places. text is the source, perhaps with parts blanked.
func (r *Report) index(src *source, text string, values map[string]any) *node {
	view := *src
	view.text = text
	s, err := scan(&view)
	if err == nil {
		err = s.root.attach(values)
	}
	if err != nil {
		r.Add("E001", Span{src, 0, 0}, "", "%v: please report this file", err)
		return nil
	}
	s.root.relocate(src)
	return s.root
}

// relocate makes the places of a tree belong to another source of the same length.
func (n *node) relocate(src *source) {
	if n.key.src != nil {
		n.key.src = src
	}
	n.val.src = src
	for _, child := range n.table {
		child.relocate(src)
	}
	for _, item := range n.items {
		item.relocate(src)
	}
}

// duplicates reports the names that are defined twice, if that was the decoder's error. It returns the text
// without the second definitions, or nothing if they cannot be taken out.
func (r *Report) duplicates(src *source, text string, err error) (rest string, found bool) {
	if !strings.Contains(err.Error(), "already") {
		return "", false
	}
	view := *src
	view.text = text
	s, _ := scan(&view) // keys found before an error count
	blanked := []byte(text)
	for i, d := range s.dups {
		if i == maxDuplicates {
			return "", true
		}
		line, _ := src.place(d.first.off)
		r.Add("E006", Span{src, d.second.off, d.second.end}, fmt.Sprintf("it is first defined in line %d", line),
			"`%s` is defined twice", strings.Join(d.path, "."))
		if !d.isStatement {
			return "", true
		}
		blank(blanked[d.whole.off:d.whole.end])
	}
	return string(blanked), len(s.dups) > 0
}

// blank replaces a part of a text so that the other parts keep their places.
func blank(text []byte) {
	for i, b := range text {
		if b != '\n' {
			text[i] = ' '
		}
	}
}

// syntax reports the decoder's error, and errors in later lines that are malformed by themselves, which cannot follow from an earlier mistake.
func (r *Report) syntax(src *source, text string, err error) {
	blanked := []byte(text)
	for range maxSyntax {
		at := r.complain(src, err)
		line, _ := src.place(at)
		if alone(src.line(line)) == nil {
			return
		}
		blank(blanked[src.lines[line-1]:min(src.lines[line-1]+len(src.line(line)), len(blanked))])
		var values map[string]any
		if _, err = decode(string(blanked), &values); err == nil {
			return
		}
		next, _ := src.place(offset(err))
		if next <= line || alone(src.line(next)) == nil {
			return
		}
	}
}

func alone(line string) error {
	var values map[string]any
	_, err := decode(line, &values)
	return err
}

// offset returns the offset of the decoder's error.
func offset(err error) int {
	var pe toml.ParseError
	var deep *deepError
	switch {
	case errors.As(err, &pe):
		return pe.Position.Start
	case errors.As(err, &deep):
		return deep.off
	}
	return 0
}

// complain reports one error of the decoder and returns its offset.
func (r *Report) complain(src *source, err error) int {
	var pe toml.ParseError
	if !errors.As(err, &pe) {
		at := offset(err)
		r.Add("E001", Span{src, at, at}, "", "%v", err)
		return at
	}
	code, message := "E001", strings.ReplaceAll(pe.Message, `'\n'`, "the end of the line")
	if strings.Contains(message, "already") {
		code = "E006"
	}
	start := min(max(pe.Position.Start, 0), len(src.text))
	end := min(start+max(pe.Position.Len, 0), len(src.text))
	r.Add(code, Span{src, start, end}, syntaxHelp(message), "%s", lowerFirst(message))
	return start
}

// syntaxHelp returns the remedy for the most common mistakes.
func syntaxHelp(message string) string {
	switch {
	case strings.HasPrefix(message, "expected value but found \""):
		return "put text in quotes"
	case strings.HasPrefix(message, "expected value but found the end"):
		return "write key = value"
	case strings.Contains(message, "strings cannot contain newlines"):
		return "close the quotes in the same line"
	case strings.Contains(message, "top-level item to end with a newline"):
		return "one key a line"
	case strings.Contains(message, "expected '.' or '='"):
		return "write key = value"
	}
	return ""
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && (s[1] < 'A' || s[1] > 'Z') {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
