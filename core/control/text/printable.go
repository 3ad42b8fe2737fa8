package text

import (
	"strings"
	"unicode"
)

// Printable keeps texts of guests and files from steering the terminal: control characters, except newlines and tabs, become question marks.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '?'
		}
		return r
	}, s)
}
