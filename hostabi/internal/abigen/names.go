package main

import (
	"strings"
	"unicode"
)

// snake turns a Go name into lower_snake_case: StrideT → stride_t, ABIMajor → abi_major, DType → dtype.
func snake(name string) string {
	name = strings.NewReplacer("DType", "Dtype", "SoA", "Soa").Replace(name)
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// constantName is the name of a constant in both views: NextStep of type Autoreset → AUTORESET_NEXT_STEP,
// RoleAction → ROLE_ACTION, BF16 → BF16.
func constantName(c number) string {
	name := strings.ToUpper(c.name)
	if c.typ != "DType" {
		name = strings.ToUpper(snake(c.name))
	}
	if c.typ == "Autoreset" {
		return "AUTORESET_" + name
	}
	return name
}
