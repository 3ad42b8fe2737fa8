package ptx

import "github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"

// dtype is the type that an instruction ends in.
type dtype = syntax.Type

var (
	predType = dtype{Kind: 'p', Bits: 1}
	u16Type  = dtype{Kind: 'u', Bits: 16}
	u32Type  = dtype{Kind: 'u', Bits: 32}
	u64Type  = dtype{Kind: 'u', Bits: 64}
	s16Type  = dtype{Kind: 's', Bits: 16}
	s32Type  = dtype{Kind: 's', Bits: 32}
	s64Type  = dtype{Kind: 's', Bits: 64}
	b32Type  = dtype{Kind: 'b', Bits: 32}
	f32Type  = dtype{Kind: 'f', Bits: 32}
)

// plain is the type of some bits.
func plain(bits int) dtype { return dtype{Kind: 'b', Bits: bits} }

// unsigned is the type of unsigned integers of some bits.
func unsigned(bits int) dtype { return dtype{Kind: 'u', Bits: bits} }
