// Package markdown writes the parts of generated pages: prose with one sentence a line, tables, and blocks of text.
//
//	page := markdown.Prose("Trains a policy. See rlhost man.") + markdown.Table(header, rows)
//
// It reads no Markdown, and knows nothing about rlhost.
package markdown

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Columns is the longest line of prose.
const Columns = 100

// Prose returns paragraphs with one sentence a line, in lines of at most Columns. Paragraphs are separated by blank lines; an indented one
// becomes a block of text. A line that begins with "- " begins an item of a list.
func Prose(text string) string {
	var b strings.Builder
	for _, paragraph := range paragraphs(text) {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		if strings.HasPrefix(paragraph, " ") {
			b.WriteString(Block("text", paragraph))
			continue
		}
		for _, sentence := range Sentences(paragraph) {
			b.WriteString(wrap(Escape(sentence)))
		}
	}
	return b.String()
}

// paragraphs divides a text; indented paragraphs that follow each other are one.
func paragraphs(text string) (list []string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		paragraph = strings.Trim(paragraph, "\n")
		if last := len(list) - 1; last >= 0 && strings.HasPrefix(paragraph, " ") && strings.HasPrefix(list[last], " ") {
			list[last] += "\n\n" + paragraph
		} else if paragraph != "" {
			list = append(list, paragraph)
		}
	}
	return list
}

// Block returns a fenced block. The indentation that all its lines share goes.
func Block(language, text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n "), "\n")
	shared := -1
	for _, line := range lines {
		if indent := len(line) - len(strings.TrimLeft(line, " ")); strings.TrimSpace(line) != "" && (shared < 0 || indent < shared) {
			shared = indent
		}
	}
	var b strings.Builder
	b.WriteString("```" + language + "\n")
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line[min(max(shared, 0), len(line)):], " ") + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}

var (
	sentenceEnd  = regexp.MustCompile(`[.?!]["')]*\s+`)
	abbreviation = regexp.MustCompile(`(?:^|[\s(])(?:e\.g|i\.e|etc|vs|al)\.$`)
)

// Sentences divides a paragraph, whose lines are joined.
func Sentences(paragraph string) (list []string) {
	text := strings.Join(strings.Fields(paragraph), " ")
	start := 0
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		sentence := strings.TrimSpace(text[start:at[1]])
		if abbreviation.MatchString(sentence) || strings.Count(sentence, "`")%2 == 1 {
			continue
		}
		list = append(list, sentence)
		start = at[1]
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		list = append(list, rest)
	}
	return list
}

// means matches a word that would make a list, a heading or a quote of a line that it begins.
var means = regexp.MustCompile(`^([-+*=]+|#+|>.*|\d+[.)])$`)

// wrap returns a sentence in lines of at most Columns.
func wrap(sentence string) string { return fill(sentence, "", utf8.RuneCountInString) }

// fill puts words into lines of at most Columns, by a measure of words, with an indentation from the second line on. A word that would
// mean something else at the beginning of a line stays on the line before.
func fill(text, indent string, width func(word string) int) string {
	var b strings.Builder
	used := 0
	for _, word := range words(text) {
		n := width(word)
		switch {
		case used == 0:
		case used+1+n > Columns && !means.MatchString(word):
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String() + "\n"
}

// words divides a sentence at blanks, but for blanks within code.
func words(sentence string) (list []string) {
	code := false
	for word := range strings.FieldsSeq(sentence) {
		if code {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
		code = code != (strings.Count(word, "`")%2 == 1)
	}
	return list
}

var special = strings.NewReplacer(`<`, `\<`, `**`, `**`, `*`, `\*`)

// Escape returns text so that it means itself, outside the code that it has between backticks. Two stars still make text bold.
func Escape(text string) string {
	parts := strings.Split(text, "`")
	for i := range parts {
		if i%2 == 0 {
			parts[i] = special.Replace(parts[i])
		}
	}
	return strings.Join(parts, "`")
}

// Item returns Markdown as an item of a list, in lines of at most Columns without the targets of links.
func Item(text string) string {
	return fill("- "+text, "  ", func(word string) int { return utf8.RuneCountInString(target.ReplaceAllString(word, "]")) })
}

var (
	target = regexp.MustCompile(`\]\([^)]*\)`)
	link   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// WithoutLinks returns Markdown with the text of links alone.
func WithoutLinks(text string) string { return link.ReplaceAllString(text, "$1") }

// Code returns text as code; empty for no text.
func Code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// Table returns a table. Cells are Markdown; a bar in one is escaped, and its lines are joined.
func Table(header []string, rows [][]string) string {
	var b strings.Builder
	row(&b, header)
	b.WriteString("|" + strings.Repeat(" --- |", len(header)) + "\n")
	for _, cells := range rows {
		row(&b, cells)
	}
	return b.String()
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for _, cell := range cells {
		cell = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
		b.WriteString(strings.TrimRight(" "+cell, " ") + " |")
	}
	b.WriteString("\n")
}

// Anchor returns the name that a heading has in links to it, as GitHub makes it.
func Anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}
