package graph

import (
	"fmt"
	"strings"
)

// Format returns a pipeline's text in the one layout that all files can have: one blank line before each table and at most one between keys,
// one blank around =, no indentation and no alignment; lists that are broken over lines have one item a line. Comments, the order of keys and
// the spelling of values stay. A file that cannot be read is refused; the error is of type Problems.
func Format(file string, src []byte) ([]byte, error) {
	c := newChecker(file, ParseOptions{})
	text := bom(string(src))
	if c.read(newSource(file, text, 0)); c.failed(0) {
		return nil, c.Sorted()
	}
	f := &formatter{scanner: scanner{s: text, src: newSource(file, text, 0), open: -1}}
	out, err := f.file()
	if err == nil {
		err = sameValues(text, out)
	}
	if err != nil {
		c.Add("E001", Span{}, "", "cannot be formatted: %v: please report this file", err)
		return nil, c.Sorted()
	}
	return []byte(out), nil
}

// sameValues checks that two texts say the same.
func sameValues(a, b string) error {
	var x, y map[string]any
	if _, err := decode(a, &x); err != nil {
		return err
	}
	if _, err := decode(b, &y); err != nil {
		return err
	}
	if fmt.Sprintf("%#v", x) != fmt.Sprintf("%#v", y) {
		return fmt.Errorf("its values would change")
	}
	return nil
}

// formatter writes a text that the decoder has accepted.
type formatter struct {
	scanner
	out       strings.Builder
	blank     bool     // lines without text since the last line of text
	comments  []string // lines of comments that may belong to a header
	separated bool     // a blank line before the comments
}

// file formats all of the text.
func (f *formatter) file() (string, error) {
	for {
		f.skip(false)
		switch f.peek() {
		case 0:
			if f.i < len(f.s) {
				return "", errScan
			}
			f.flush(false)
			return f.out.String(), nil
		case '\n', '\r':
			f.newline()
		case '#':
			if len(f.comments) > 0 && f.blank {
				f.flush(false)
			}
			if len(f.comments) == 0 {
				f.separated = f.blank
			}
			f.comments = append(f.comments, f.comment())
			f.endOfLine()
			f.blank = false
		default:
			if err := f.statementText(); err != nil {
				return "", err
			}
		}
	}
}

// newline passes the end of an empty line.
func (f *formatter) newline() {
	f.endOfLine()
	f.blank = true
}

// endOfLine passes the end of a line.
func (f *formatter) endOfLine() {
	f.take('\r')
	f.take('\n')
}

// comment reads a comment up to the end of its line.
func (f *formatter) comment() string {
	text, _, _ := strings.Cut(f.s[f.i:], "\n")
	f.i += len(text)
	return strings.TrimRight(text, " \t\r")
}

// flush writes the comments that are waiting. A header has a blank line above its comments.
func (f *formatter) flush(header bool) {
	if len(f.comments) == 0 {
		return
	}
	f.separate(header || f.separated)
	for _, line := range f.comments {
		f.out.WriteString(line + "\n")
	}
	f.comments = nil
}

// separate writes a blank line, except at the top of the file and below a header.
func (f *formatter) separate(wanted bool) {
	text := f.out.String()
	if wanted && text != "" && !strings.HasSuffix(text, "\n\n") {
		f.out.WriteString("\n")
	}
}

// statementText formats a header or a key with its value, and the comment behind it.
func (f *formatter) statementText() error {
	header := f.peek() == '['
	above := header && !f.blank // comments that touch the header are its own
	hasComments := len(f.comments) > 0
	f.flush(above)
	f.separate(f.blank || header && !(above && hasComments))
	text, err := f.headerOrPair(header)
	if err != nil {
		return err
	}
	f.skip(false)
	if f.peek() == '#' {
		text += " " + f.comment()
	}
	f.out.WriteString(text + "\n")
	if at := f.peek(); at != 0 && at != '\n' && at != '\r' {
		return errScan
	}
	f.endOfLine()
	f.blank = false
	if header {
		for f.skip(false); f.peek() == '\n' || f.peek() == '\r'; f.skip(false) {
			f.endOfLine()
		}
	}
	return nil
}

func (f *formatter) headerOrPair(header bool) (string, error) {
	if header {
		return f.headerText()
	}
	return f.pairText("")
}

// headerText formats [a.b] or [[a.b]].
func (f *formatter) headerText() (string, error) {
	f.i++
	many := f.take('[')
	key, err := f.keyText()
	if err != nil {
		return "", err
	}
	if !f.take(']') || many && !f.take(']') {
		return "", errScan
	}
	if many {
		return "[[" + key + "]]", nil
	}
	return "[" + key + "]", nil
}

// keyText formats a dotted key.
func (f *formatter) keyText() (string, error) {
	parts, err := f.keyParts()
	if err != nil {
		return "", err
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = f.s[p.Span.off:p.Span.end]
	}
	return strings.Join(texts, "."), nil
}

// pairText formats key = value.
func (f *formatter) pairText(indent string) (string, error) {
	key, err := f.keyText()
	if err != nil {
		return "", err
	}
	if !f.take('=') {
		return "", errScan
	}
	value, err := f.valueText(indent)
	return key + " = " + value, err
}

// valueText formats a value whose first line is indented by that much.
func (f *formatter) valueText(indent string) (string, error) {
	f.skip(false)
	switch f.peek() {
	case '[':
		return f.listText(indent, "[", "]", "", f.valueText)
	case '{':
		return f.listText(indent, "{", "}", " ", f.pairText)
	}
	n, err := f.value(nil)
	if err != nil {
		return "", err
	}
	return f.s[n.val.off:n.val.end], nil
}
