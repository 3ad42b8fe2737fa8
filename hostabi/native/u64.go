package native

import (
	"fmt"
	"strconv"
)

// U64 is a number that uses all of its 64 bits, such as a seed or a handle. In JSON it is a string of decimal digits,
// because many languages read a number as a float64, which loses bits above 2^53. What only counts stays a number.
type U64 uint64

// MarshalJSON returns the string.
func (n U64) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(n), 10)), nil
}

// UnmarshalJSON takes the string; null is 0, as in every field of the documents.
func (n *U64) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = 0
		return nil
	}
	last := len(b) - 1
	if last < 1 || b[0] != '"' {
		return fmt.Errorf("%.40s is no number of 64 bits, which is a string of decimal digits", b)
	}
	v, err := strconv.ParseUint(string(b[1:last]), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40s is no decimal number from 0 to 2^64-1", b)
	}
	*n = U64(v)
	return nil
}
