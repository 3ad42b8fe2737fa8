package cluster

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// keyOf returns the key of a name: its parts as they are, joined by ".", where letters, digits, "-" and "_" stand for themselves and each other
// byte is "=" and two hexadecimal digits.
func keyOf(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c == '/':
			b.WriteByte('.')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

// nameOf returns the name of a key, and false for a key that no name has.
func nameOf(key string) (name string, ok bool) {
	var b strings.Builder
	for rest := key; rest != ""; {
		c := rest[0]
		rest = rest[1:]
		switch c {
		case '.':
			b.WriteByte('/')
		case '=':
			if len(rest) < 2 {
				return "", false
			}
			raw, err := hex.DecodeString(rest[:2])
			if err != nil {
				return "", false
			}
			b.Write(raw)
			rest = rest[2:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), keyOf(b.String()) == key
}

// filters returns the patterns of keys below a root, and of its own.
func filters(root string) []string {
	if root == "" {
		return []string{">"}
	}
	return []string{keyOf(root), keyOf(root) + ".>"}
}
