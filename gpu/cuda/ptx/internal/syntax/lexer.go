package syntax

import (
	"fmt"
	"strings"
)

// Error is text that is not PTX, or PTX that is not run.
type Error struct {
	Line   int // 1 is the first
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("ptx: line %d: %s", e.Line, e.Reason) }

// token is a word (names, numbers and dotted opcodes), a string with its quotes or one character of punctuation; the end of
// the text is "".
type token struct {
	text string
	line int
	at   int // offset in the text
}

// lex cuts a text into tokens and drops comments.
func lex(text string) ([]token, error) {
	var tokens []token
	line := 1
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(text[i:], "//"):
			i += lineEnd(text[i:])
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i:], "*/")
			if n < 0 {
				return nil, &Error{line, "a comment does not end"}
			}
			line += strings.Count(text[i:i+n], "\n")
			i += n + 2
		case c == '"':
			n := strings.IndexAny(text[i+1:], "\"\n")
			if n < 0 || text[i+1+n] == '\n' {
				return nil, &Error{line, "a string does not end"}
			}
			tokens = append(tokens, token{text[i : i+n+2], line, i})
			i += n + 2
		case isWord(c):
			n := wordEnd(text[i:])
			tokens = append(tokens, token{text[i : i+n], line, i})
			i += n
		case strings.IndexByte("{}[]()<>,;:+-=@!|", c) >= 0:
			tokens = append(tokens, token{text[i : i+1], line, i})
			i++
		default:
			return nil, &Error{line, fmt.Sprintf("unexpected character %q", c)}
		}
	}
	return append(tokens, token{"", line, len(text)}), nil
}

func lineEnd(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%' || c == '.'
}

// wordEnd returns how long the word is that text begins with; "::" belongs to it, as in ".L2::128B".
func wordEnd(text string) int {
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], "::") {
			i++
		} else if !isWord(text[i]) {
			return i
		}
	}
	return len(text)
}
