package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteUnits are the units of sizes, largest first.
var byteUnits = [...]struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseBytes reads a size such as 16MiB. Only powers of 1024 have names here, to avoid ambiguity.
func ParseBytes(s string) (int64, error) {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		return n * u.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size", s)
}

// FormatBytes is the inverse of ParseBytes.
func FormatBytes(n int64) string {
	for _, u := range byteUnits {
		if n%u.bytes == 0 && n >= u.bytes {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// Size is a number of bytes above 0, written such as 16MiB.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := ParseBytes(string(text))
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a size; write 64MiB or 1GiB", text)
	}
	*s = Size(n)
	return nil
}
