package native

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/hostabi"
)

// Kinds of schemas.
const (
	KindTrajectory = "trajectory" // where the columns of a trajectory lie
	KindNames      = "names"      // the names of float64 values
	KindTensors    = "tensors"    // columns of the sender's own
)

// ErrSchema is wrapped by every error about a schema of another process.
var ErrSchema = errors.New("schema not accepted")

// maxColumns bounds the schema of another process.
const maxColumns = 256

// EncodeSpec returns the document for an environment's description.
func EncodeSpec(s *hostabi.EnvSpec) *EnvSpec { return &EnvSpec{Describe: s.Describe()} }

// Decode checks an environment's description. Errors wrap hostabi.ErrSpec.
func (s *EnvSpec) Decode() (hostabi.EnvSpec, error) { return hostabi.ParseSpec(s.Describe) }

// Document returns the schema itself: it is the description for other processes.
func (s *Schema) Document() *Schema { return s }

// CheckColumns refuses columns that reach beyond a block of the given size. Errors wrap ErrSchema.
func CheckColumns(columns []Column, blockBytes int) error {
	if len(columns) > maxColumns {
		return fmt.Errorf("%w: %d columns, at most %d", ErrSchema, len(columns), maxColumns)
	}
	for i := range columns {
		if c := &columns[i]; !fits(c, blockBytes) {
			return fmt.Errorf("%w: column %q is not within a block of %d bytes", ErrSchema, c.Name, blockBytes)
		}
	}
	return nil
}

// fits reports whether the last element of a column lies in the block. No stride is negative, so the last element reaches farthest.
func fits(c *Column, blockBytes int) bool {
	size := DTypeOf(c.DType).Bytes()
	if size == 0 || c.Offset < 0 || c.Offset > blockBytes-size {
		return false
	}
	left := blockBytes - size - c.Offset
	for _, d := range [][2]int{{c.Rows, c.StrideT}, {c.Envs, c.StrideEnv}, {c.Elems, c.StrideElem}} {
		n, stride := d[0], d[1]
		if n < 1 || stride < 0 || n > math.MaxInt32 || stride > math.MaxInt32 || (n-1)*stride > left {
			return false
		}
		left -= (n - 1) * stride
	}
	product := 1
	for _, n := range c.Shape {
		if n < 1 || product > math.MaxInt32/n {
			return false
		}
		product *= n
	}
	return product == c.Elems
}

// DTypeOf returns the type with that name, or 0, which has no bytes, if there is none.
func DTypeOf(name string) hostabi.DType {
	for d := hostabi.U8; d <= hostabi.Bool; d++ {
		if d.Bytes() > 0 && d.String() == name {
			return d
		}
	}
	return 0
}
