package shape

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrases are what no maintainer says aloud, with the words to write instead. A phrase may run over the end of a line.
var phrases = []struct {
	bad     *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bthose (of|that|which|who)\b`), `the noun: "the run's blocks" for "those of the run"`},
	{regexp.MustCompile(`(?i)\bwhat (it|they) (is|are|was|were|has|have|had|does|do|did)\b`), `the noun: "its state", "their outputs"`},
	{regexp.MustCompile(`(?i)\bthat which\b`), "the noun"},
	{regexp.MustCompile(`(?i)\bwho(so)?ever\b`), `who does it: "the caller", "the receiver"`},
	{regexp.MustCompile(`(?i)\bone who\b`), "who it is"},
	{regexp.MustCompile(`(?i)\b(go(es)?|gone|going|went) on\b`), `"continues", "resumes", "runs"; "during the run"`},
	{regexp.MustCompile(`(?i)\bof before\b`), `"previous", "earlier"`},
	{regexp.MustCompile(`(?i)\b(at|to) rest\b`), `"paused", "pauses", "idle"`},
	{regexp.MustCompile(`(?i)\banew\b`), `"again", "from scratch"; "is replaced" for "is made anew"`},
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been) told of\b`), `"is reported", "hears of"`},
}

// TestShape_CommentsAreSaidAloud: a comment names the thing, in the words that one would use in speech.
func TestShape_CommentsAreSaidAloud(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		for _, g := range s.file.Comments {
			for _, said := range saidIn(g) {
				t.Errorf("%s:%d: %q; write %s", s.path, s.set.Position(said.at).Line, said.phrase, said.instead)
			}
		}
	}
}

// said is a phrase in a comment.
type said struct {
	phrase, instead string
	at              token.Pos // of the line that it begins in
}

// saidIn finds the phrases of a comment.
func saidIn(g *ast.CommentGroup) (list []said) {
	var text strings.Builder
	var starts []int // of lines in text
	for _, c := range g.List {
		starts = append(starts, text.Len())
		text.WriteString(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")) + " ")
	}
	for _, p := range phrases {
		for _, at := range p.bad.FindAllStringIndex(text.String(), -1) {
			line, found := slices.BinarySearch(starts, at[0])
			if !found {
				line--
			}
			list = append(list, said{text.String()[at[0]:at[1]], p.instead, g.List[line].Pos()})
		}
	}
	return list
}
