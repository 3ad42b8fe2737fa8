package markdown

import (
	"strings"
	"testing"
)

func TestProse_HasOneSentenceALine(t *testing.T) {
	for text, want := range map[string]string{
		"One thing.\nAnother (with `a. b`), e.g. this. rlhost ends.": "One thing.\nAnother (with `a. b`), e.g. this.\nrlhost ends.\n",
		"Before:\n\n  rlhost a\n\n  rlhost b\n\nAfter.":              "Before:\n\n```text\nrlhost a\n\nrlhost b\n```\n\nAfter.\n",
		"A <file> and *.":                      "A \\<file> and \\*.\n",
		"`<file>`":                             "`<file>`\n",
		strings.Repeat("word ", 21) + "- end.": strings.TrimSpace(strings.Repeat("word ", 20)) + "\nword - end.\n",
	} {
		if got := Prose(text); got != want {
			t.Errorf("Prose(%q) =\n%q, want\n%q", text, got, want)
		}
	}
}

func TestTable_KeepsItsColumns(t *testing.T) {
	want := "| a | b |\n| --- | --- |\n| `x\\|y` | two lines |\n| | end |\n"
	if got := Table([]string{"a", "b"}, [][]string{{"`x|y`", "two\nlines"}, {"", "end"}}); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
