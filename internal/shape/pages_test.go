package shape

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	widest  = 100 // columns of a line, without the targets of its links
	longest = 40  // words of a sentence
)

// pageWords are words that a page does not use, with the words to write instead. They are looked for outside of code.
var pageWords = []struct {
	bad     *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bbehind\b`), `"after"; "contiguous" for rows one behind the other`},
	{regexp.MustCompile(`(?i)\bbeside\b`), `"next to", "besides"`},
	{regexp.MustCompile(`(?i)\banew\b`), `"again"`},
	{regexp.MustCompile(`(?i)\b(the|a|its|their) least\b`), `"the minimum", "the smallest"`},
	{regexp.MustCompile(`(?i)\b(stands?|standing|lies|lay|lie) (in|at|on|there)\b`), `"is in"`},
	{regexp.MustCompile(`(?i)\bheld to\b`), `"is checked against", "matches"`},
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been) told\b`), `"is reported"`},
	{regexp.MustCompile(`(?i)\b(says?|tells?) of (itself|themselves)\b`), `"reports"`},
	{regexp.MustCompile(`(?i)\b(comes?|came|coming|at|to) (to )?rest\b`), `"becomes idle"`},
	{regexp.MustCompile(`(?i)\bin the place of\b`), `"instead of"`},
	{regexp.MustCompile(`(?i)\bfigures?\b`), `"info value", "number"`},
	{regexp.MustCompile(`(?i)\bone's own\b`), `"your own"`},
	{regexp.MustCompile(`(?i)\bgiven polic(y|ies)\b`), `"fixed policy"`},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), `"fix"`},
	{regexp.MustCompile(`(?i)\bcures?\b`), `"fix"`},
	{regexp.MustCompile(`(?i)\bcanar(y|ies)\b`), `"trial"`},
	{regexp.MustCompile(`(?i)\bmost probable (action|choice)s?\b`), `"greedy"`},
	{regexp.MustCompile(`(?i)\bwired by patterns\b`), `"matched by patterns"`},
}

// fault is a place where a page leaves the style.
type fault struct {
	line int
	text string
}

// TestShape_PagesAreSaidAloud: pages have short lines and sentences, one sentence a line, the words of the field, and headings that
// name a task or a thing.
//
//	go test ./internal/shape -run TestShape_PagesAreSaidAloud/docs/results/gpu.md
func TestShape_PagesAreSaidAloud(t *testing.T) {
	t.Parallel()
	for _, page := range pagesOf(t) {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../..", page))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range faultsIn(string(text)) {
				t.Errorf("%s:%d: %s", page, f.line, f.text)
			}
		})
	}
}

// TestShape_PageStyle: the test of pages finds what it should, and nothing in a page that is in the style.
func TestShape_PageStyle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 41)
	for text, want := range map[string]string{
		"# Wrap an environment\n\nWrap it with a list.\nThe list is short.\n":  "",
		"Use e.g. `a. B` or 0.5 of it.\n":                                      "",
		"- One item.\n- Another item.\n\n1. Build it.\n2. Run it.\n":           "",
		"| a. B | " + long + long + " |\n":                                     "",
		"```sh\nbehind. " + long + long + "\n```\n":                            "",
		"[" + strings.Repeat("x", 60) + "](" + strings.Repeat("y", 90) + ")\n": "",
		"`" + strings.Repeat("x", 120) + "`\n":                                 "",
		"At least one.\n":                                                      "",
		"One sentence. Another one.\n":                                         `1: a sentence begins in the middle of the line, at "Another one."`,
		"- One. `two` is next.\n":                                              "1: a sentence begins in the middle of the line, at \"`two` is next.\"",
		strings.Repeat("ab ", 40) + "\n":                                       "1: 119 columns, of at most 100",
		strings.TrimSpace(strings.Repeat("word ", 15)) + "\n" + strings.Repeat("word ", 15) + "\n" + strings.Repeat("word ", 15) + "\n": "1: a sentence of 45 words, of at most 40",
		"A.\n\n## What there is\n":  `3: a heading that begins with "What": name the task or the thing`,
		"It is behind\nthe wall.\n": `1: "behind"; write "after"; "contiguous" for rows one behind the other`,
		"| canary | x |\n":          `1: "canary"; write "trial"`,
		"One of one's\nown.\n":      `1: "one's own"; write "your own"`,
		"<!-- behind -->\nFine.\n":  "",
	} {
		var got []string
		for _, f := range faultsIn(text) {
			got = append(got, fmt.Sprintf("%d: %s", f.line, f.text))
		}
		if joined := strings.Join(got, "\n"); joined != want {
			t.Errorf("%q: %q, want %q", text, joined, want)
		}
	}
}

// pagesOf lists the pages for users and contributors.
func pagesOf(t *testing.T) []string {
	list := []string{"README.md", "CONTRIBUTING.md"}
	for _, top := range []string{"docs", "examples", "sdk"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "target" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
				return fs.SkipDir
			case strings.HasSuffix(path, ".md") && (top == "docs" || d.Name() == "README.md"):
				list = append(list, strings.TrimPrefix(path, "../../"))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

var (
	linkTarget = regexp.MustCompile(`\]\([^)]*\)|\]\[[^\]]*\]`)
	codeSpan   = regexp.MustCompile("``[^`].*?``|`[^`]*`")
	htmlNote   = regexp.MustCompile(`(?s)<!--.*?-->`)
	item       = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	sentence   = regexp.MustCompile(`[.!?]["')*_]*\s+`)
	beginning  = regexp.MustCompile("^[\"'(*_\\[]*([`A-Z0-9]|rlhost\\b)")
	shortened  = regexp.MustCompile(`(?i)\b(e\.g|i\.e|vs|cf|etc|approx|no|fig|resp|ca)\.$`)
)

// faultsIn returns where a page leaves the style.
func faultsIn(text string) (list []fault) {
	text = htmlNote.ReplaceAllStringFunc(text, func(note string) string { return strings.Repeat("\n", strings.Count(note, "\n")) })
	fenced := false
	var paragraph []string
	begin := 0
	flush := func() {
		list = append(list, paragraphFaults(paragraph, begin)...)
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(strings.TrimSpace(line), "> ")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			flush()
			fenced = !fenced
		case fenced:
		case trimmed == "" || strings.HasPrefix(trimmed, "<"):
			flush()
		case strings.HasPrefix(trimmed, "#"):
			flush()
			list = append(list, headingFaults(trimmed, i+1)...)
		case strings.HasPrefix(trimmed, "|"):
			flush()
			list = append(list, wordFaults(codeSpan.ReplaceAllString(trimmed, "`"), i+1)...)
		default:
			if item.MatchString(line) {
				flush()
			}
			if paragraph == nil {
				begin = i + 1
			}
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return list
}

// headingFaults returns the faults of a heading.
func headingFaults(heading string, line int) (list []fault) {
	title := strings.TrimSpace(strings.TrimLeft(heading, "#"))
	if strings.HasPrefix(title, "What ") {
		list = append(list, fault{line, `a heading that begins with "What": name the task or the thing`})
	}
	return append(list, wordFaults(codeSpan.ReplaceAllString(title, "`"), line)...)
}

// paragraphFaults returns the faults of a paragraph or of one item of a list, whose first line is begin.
func paragraphFaults(lines []string, begin int) (list []fault) {
	words, first := 0, begin // of the open sentence
	end := func() {
		if words > longest {
			list = append(list, fault{first, fmt.Sprintf("a sentence of %d words, of at most %d", words, longest)})
		}
		words = 0
	}
	for i, line := range lines {
		if n := columns(line); n > widest && len(strings.Fields(codeSpan.ReplaceAllString(line, "`"))) > 1 {
			list = append(list, fault{begin + i, fmt.Sprintf("%d columns, of at most %d", n, widest)})
		}
		parts := sentencesOf(item.ReplaceAllString(line, ""))
		for n, part := range parts {
			if n > 0 {
				list = append(list, fault{begin + i, fmt.Sprintf("a sentence begins in the middle of the line, at %q", clipped(part))})
			}
			if words == 0 {
				first = begin + i
			}
			words += len(strings.Fields(codeSpan.ReplaceAllString(part, "`")))
			if n < len(parts)-1 || ends(part) {
				end()
			}
		}
	}
	end()
	return append(list, wordFaults(codeSpan.ReplaceAllString(strings.Join(lines, "\n"), "`"), begin)...)
}

// columns is the width of a line without the targets of its links.
func columns(line string) int {
	return utf8.RuneCountInString(linkTarget.ReplaceAllString(strings.TrimRight(line, " "), "]"))
}

// sentencesOf splits a line where a sentence ends and another begins.
func sentencesOf(line string) (list []string) {
	line = strings.TrimSpace(line)
	plain := codeSpan.ReplaceAllStringFunc(line, func(code string) string { return "`" + strings.Repeat("x", len(code)-2) + "`" })
	from := 0
	for _, at := range sentence.FindAllStringIndex(plain, -1) {
		if shortened.MatchString(plain[from:at[0]+1]) || !beginning.MatchString(plain[at[1]:]) {
			continue
		}
		list = append(list, strings.TrimSpace(line[from:at[1]]))
		from = at[1]
	}
	return append(list, line[from:])
}

// ends reports whether a sentence ends with the line.
func ends(line string) bool {
	line = strings.TrimRight(line, "\"')*_ ")
	return strings.HasSuffix(line, ".") || strings.HasSuffix(line, "!") || strings.HasSuffix(line, "?")
}

// clipped is the first words of a sentence.
func clipped(s string) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(len(words), 5)], " ")
}

// wordFaults returns the banned words of a text that begins in a line.
func wordFaults(text string, begin int) (list []fault) {
	text = linkTarget.ReplaceAllString(text, "]")
	flat := strings.ReplaceAll(text, "\n", " ")
	for _, w := range pageWords {
		for _, at := range w.bad.FindAllStringIndex(flat, -1) {
			line := begin + strings.Count(text[:at[0]], "\n")
			list = append(list, fault{line, fmt.Sprintf("%q; write %s", flat[at[0]:at[1]], w.instead)})
		}
	}
	return list
}
