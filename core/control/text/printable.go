package text

import (
	"strings"
	"unicode"
)

// Printable keeps what guests and files say from steering the terminal: control characters become question marks, but for newlines
// and tabs.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '?'
		}
		return r
	}, s)
}
