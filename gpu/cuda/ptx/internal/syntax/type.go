package syntax

// Type is the type of a register or of an instruction.
type Type struct {
	Kind byte // 'u', 's', 'f', 'b'; 'p' for predicates
	Bits int
}

// Types are the supported types, by their names.
var Types = map[string]Type{
	"u8": {'u', 8}, "u16": {'u', 16}, "u32": {'u', 32}, "u64": {'u', 64},
	"s8": {'s', 8}, "s16": {'s', 16}, "s32": {'s', 32}, "s64": {'s', 64},
	"b8": {'b', 8}, "b16": {'b', 16}, "b32": {'b', 32}, "b64": {'b', 64},
	"f32": {'f', 32}, "f64": {'f', 64},
	"pred": {'p', 1},
}

// Bytes is how much memory a value takes.
func (t Type) Bytes() int { return (t.Bits + 7) / 8 }

// Float reports whether values of the type are f32 or f64.
func (t Type) Float() bool { return t.Kind == 'f' }

// Signed reports whether the type is one of signed integers.
func (t Type) Signed() bool { return t.Kind == 's' }

// Extend returns the 64-bit integer whose low bits raw has, by the type's sign.
func (t Type) Extend(raw uint64) uint64 {
	shift := 64 - uint(t.Bits)
	if t.Kind == 's' {
		return uint64(int64(raw<<shift) >> shift)
	}
	return raw << shift >> shift
}
