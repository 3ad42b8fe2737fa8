package graph

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoted passes a string in one kind of quotes, in threes when many.
func (c *scanner) quoted(quote byte, many bool) error {
	if !many {
		for c.i++; c.i < len(c.s) && c.s[c.i] != '\n'; c.i++ {
			switch {
			case c.s[c.i] == '\\' && quote == '"':
				c.i++
			case c.s[c.i] == quote:
				c.i++
				return nil
			}
		}
		return errScan
	}
	three := strings.Repeat(string(quote), 3)
	for c.i += 3; c.i < len(c.s); c.i++ {
		switch {
		case c.s[c.i] == '\\' && quote == '"':
			c.i++
		case strings.HasPrefix(c.s[c.i:], three):
			// Up to two quotes belong to the text when five stand together.
			for n := 0; n < 2 && strings.HasPrefix(c.s[c.i+1:], three); n++ {
				c.i++
			}
			c.i += 3
			return nil
		}
	}
	return errScan
}

// unescape resolves the escapes of a basic string.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i >= len(s) {
			return "", errScan
		}
		if at := strings.IndexByte(`btnfre"\`, s[i]); at >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b\"\\"[at])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits == 0 || i+digits >= len(s) {
			return "", errScan
		}
		r, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", errScan
		}
		b.WriteRune(rune(r))
		i += digits
	}
	return b.String(), nil
}
