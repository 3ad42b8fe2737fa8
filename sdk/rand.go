package sdk

// Rand is the random stream of one environment (splitmix64). The C and Rust SDKs have the same stream. It belongs to
// the environment's caller; nothing about it is safe for concurrent use.
type Rand struct {
	state uint64
}

const golden = 0x9E3779B97F4A7C15

// NewRand starts a stream. Neighbouring seeds give unrelated streams.
func NewRand(seed uint64) Rand { return Rand{mix(seed + golden)} }

// State returns the state that RandAt continues from.
func (r *Rand) State() uint64 { return r.state }

// RandAt continues the stream that State was taken of.
func RandAt(state uint64) Rand { return Rand{state} }

// Next returns 64 random bits.
func (r *Rand) Next() uint64 {
	r.state += golden
	return mix(r.state)
}

// Uniform returns a number from low to high; high itself only by rounding.
func (r *Rand) Uniform(low, high float32) float32 {
	unit := float32(int32(r.Next()>>40)) * 0x1p-24
	return low + float32((high-low)*unit)
}

// Below returns a whole number from 0 to n-1, or 0 if n is 0.
func (r *Rand) Below(n uint32) uint32 { return uint32(r.Next() >> 32 * uint64(n) >> 32) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
