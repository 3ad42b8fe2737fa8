// Package words writes what messages about modules contain: sizes, and texts of others on one line.
package words

import (
	"fmt"
	"strings"
)

// OneLine returns a text with a single space for each piece of white space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Bytes writes a size in the largest unit that makes it a whole number.
func Bytes(n uint64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
