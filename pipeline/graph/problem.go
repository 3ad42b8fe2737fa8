package graph

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/table"
)

// Severity says whether a problem stops a pipeline.
type Severity uint8

// Severities.
const (
	Error   Severity = iota // the pipeline cannot run
	Warning                 // it can, but may not do what the user wants
)

// String returns error or warning.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is one thing that is wrong with a pipeline, and where. File is the name given to Parse, or
// "preset:NAME", or "--set", where Line counts the arguments. Line and Column count from 1, columns in
// characters; a Line of 0 means that the problem is with the file as a whole.
type Problem struct {
	Code         string // such as E002; see Explain
	File         string
	Line, Column int
	Width        int // characters to underline, at least 1
	Message      string
	Help         string // the remedy; may be empty
	Severity     Severity

	text string // the source line
	at   Span
}

// String returns the problem for editors and readers: the position first, then the line with the Span
// underlined.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line == 0 {
		fmt.Fprintf(&b, "%s: %v[%s]: %s\n", p.File, p.Severity, p.Code, p.Message)
		if p.Help != "" {
			fmt.Fprintf(&b, "  help: %s\n", p.Help)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s:%d:%d: %v[%s]: %s\n", p.File, p.Line, p.Column, p.Severity, p.Code, p.Message)
	number := strconv.Itoa(p.Line)
	text, column := window(p.text, p.Column)
	width := min(max(1, p.Width), max(1, utf8.RuneCountInString(text)-column+1))
	fmt.Fprintf(&b, "%s | %s\n", number, printable(text))
	fmt.Fprintf(&b, "%*s | %s%s", len(number), "", blanks(text, column-1), strings.Repeat("^", width))
	if p.Help != "" {
		fmt.Fprintf(&b, " help: %s", p.Help)
	}
	return b.String() + "\n"
}

// maxLine is how much of a source line is shown.
const maxLine = 120

// window returns the part of a long line around a column, and the column in it.
func window(text string, column int) (string, int) {
	runes := []rune(text)
	if len(runes) <= maxLine {
		return text, column
	}
	from := min(max(0, column-maxLine/2), len(runes)-maxLine)
	part := string(runes[from : from+maxLine])
	if from+maxLine < len(runes) {
		part += "…"
	}
	if from > 0 {
		return "…" + part, column - from + 1
	}
	return part, column
}

// printable keeps control characters of a file from reaching the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}

// blanks is as wide as the first n characters of s, tabs included.
func blanks(s string, n int) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len() >= n {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String() + strings.Repeat(" ", max(0, n-b.Len()))
}

// Problems are all problems of a pipeline, in the order of their places.
type Problems []Problem

// Error returns all problems as text, warnings too.
func (ps Problems) Error() string { return strings.TrimSuffix(ps.String(), "\n") }

// String returns all problems as text.
func (ps Problems) String() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String())
	}
	return b.String()
}

// Err returns the problems as an error if there is one among them that stops the pipeline, else nil.
func (ps Problems) Err() error {
	if slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error }) {
		return ps
	}
	return nil
}

// ProblemsOf returns the problems that an error is, or wraps; none of any other error.
func ProblemsOf(err error) (list Problems) {
	errors.As(err, &list)
	return list
}

// maxProblems bounds how many problems of one file are kept.
const maxProblems = 1000

// Report collects what a check of a pipeline finds. File is the file of problems without a position.
type Report struct {
	File string

	list []Problem
}

// Add notes a problem at a place; the zero Span means the file as a whole.
func (r *Report) Add(code string, at Span, help, format string, args ...any) {
	if len(r.list) == maxProblems {
		return
	}
	p := Problem{Code: code, File: r.File, Width: 1, Message: fmt.Sprintf(format, args...), Help: help, at: at}
	if code[0] == 'W' {
		p.Severity = Warning
	}
	if at.src != nil {
		p.File, p.Width = at.src.name, at.width()
		p.Line, p.Column = at.src.place(at.off)
		p.text = at.src.line(p.Line)
	}
	r.list = append(r.list, p)
}

// Sorted returns the problems in the order of their places, each once. Of a value with a variable that is not set nothing else is said.
func (r *Report) Sorted() Problems {
	unset := map[Span]bool{}
	for _, p := range r.list {
		unset[p.at] = unset[p.at] || p.Code == codeVariable
	}
	r.list = slices.DeleteFunc(r.list, func(p Problem) bool { return unset[p.at] && p.Code != codeVariable })
	slices.SortStableFunc(r.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.at.order(), b.at.order()), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code))
	})
	return slices.CompactFunc(r.list, func(a, b Problem) bool { return a == b })
}

// failed reports whether an error was found since a number of problems.
func (r *Report) failed(since int) bool { return Problems(r.list[since:]).Err() != nil }

// unknownKey notes a key that a table does not have.
func (r *Report) unknownKey(n *node, name, path string, known []string) {
	r.Add(table.CodeUnknown, n.key, table.MeantKey(name, known), "unknown key `%s` in [%s]", name, path)
}

// wrong notes that a value has the wrong type.
func (r *Report) wrong(n *node, path, want, help string) {
	r.Add(table.CodeType, n.val, help, "`%s` must be %s", path, want)
}

// suggest is the help where the candidate is known.
func suggest(candidate string) string { return fmt.Sprintf("did you mean %q?", candidate) }

// sourceProblem says why the file that something is made from cannot be used.
func (r *Report) sourceProblem(at Span, who, path string, err error) {
	var known *table.Error
	switch {
	case errors.As(err, &known) && known.Key == "":
		r.Add(known.Code, at, known.Help, "%s: %s", who, known.Sentence())
	case errors.Is(err, fs.ErrNotExist):
		r.Add("E012", at, "build it first, or correct the path", "%s: %s: no such file", who, path)
	default:
		r.Add("E012", at, "", "%s: %v", who, err)
	}
}

// errDecode is decode's error for a component when problems were noted. They have their places already.
var errDecode = errors.New("the table has errors, see above")
