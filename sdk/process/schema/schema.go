package schema

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"

	"github.com/rlhost/rlhost/sdk/process/protocol"
)

// Kinds of schemas.
const (
	Trajectory = "trajectory" // *trajectory.Schema
	Names      = "names"      // []string: the names of float64 values
	Tensors    = "tensors"    // *protocol.Schema: columns of the sender's own
)

// ErrSchema is wrapped by every complaint about a schema of another process.
var ErrSchema = errors.New("schema not accepted")

// maxColumns bounds what another process may say of its blocks.
const maxColumns = 256

// Encode returns the document for an arena's schema, or nil for one that only this process understands.
func Encode(s any) *protocol.Schema {
	switch s := s.(type) {
	case *trajectory.Schema:
		return encodeTrajectory(s)
	case []string:
		return &protocol.Schema{Kind: Names, Names: s}
	case *protocol.Schema:
		return s
	}
	return nil
}

// Decode returns the schema that a document describes, for blocks of the given size: a *trajectory.Schema, a []string,
// a *protocol.Schema whose columns lie within the block, or nil for none. Errors wrap ErrSchema.
func Decode(doc *protocol.Schema, blockBytes int) (any, error) {
	if doc == nil {
		return nil, nil
	}
	switch doc.Kind {
	case Trajectory:
		return decodeTrajectory(doc, blockBytes)
	case Names:
		if len(doc.Names) > blockBytes/8 {
			return nil, fmt.Errorf("%w: %d names for blocks of %d bytes", ErrSchema, len(doc.Names), blockBytes)
		}
		return slices.Clone(doc.Names), nil
	case Tensors:
		return doc, checkColumns(doc.Columns, blockBytes)
	}
	return nil, fmt.Errorf("%w: kind %q", ErrSchema, doc.Kind)
}

func encodeTrajectory(s *trajectory.Schema) *protocol.Schema {
	doc := &protocol.Schema{
		Kind: Trajectory, Spec: EncodeSpec(&s.Spec),
		Steps: s.Shape.Steps, Envs: s.Shape.Envs, SoA: s.Shape.SoA, GuestBytes: s.GuestBytes, Bytes: s.Bytes,
	}
	for c := trajectory.Column(0); c <= trajectory.ColMeta; c++ {
		l, ok := s.Layout(c)
		if !ok {
			continue
		}
		doc.Columns = append(doc.Columns, protocol.Column{
			Name: c.String(), DType: l.DType.String(), Rows: l.Rows, Envs: l.Envs, Elems: l.Elems,
			Shape: shapeOf(&s.Spec, c, l.Elems), Offset: l.Offset,
			StrideT: l.StrideT, StrideEnv: l.StrideEnv, StrideElem: l.StrideElem,
		})
	}
	return doc
}

// shapeOf returns the shape of one environment's element of a column.
func shapeOf(spec *hostabi.EnvSpec, c trajectory.Column, elems int) []int {
	shape := []int{}
	if c == trajectory.ColObs || c == trajectory.ColFinalObs {
		if d, ok := observation(spec); ok {
			for _, n := range d {
				shape = append(shape, int(n))
			}
			return shape
		}
	}
	if elems > 1 {
		shape = append(shape, elems)
	}
	return shape
}

func decodeTrajectory(doc *protocol.Schema, blockBytes int) (*trajectory.Schema, error) {
	if doc.Spec == nil {
		return nil, fmt.Errorf("%w: a trajectory without the environment's description", ErrSchema)
	}
	spec, err := DecodeSpec(doc.Spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	s, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: doc.Steps, Envs: doc.Envs, SoA: doc.SoA})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if s.Bytes != doc.Bytes || s.GuestBytes != doc.GuestBytes || s.Bytes > blockBytes {
		return nil, fmt.Errorf("%w: a trajectory of %d bytes, laid out here it has %d, and blocks have %d",
			ErrSchema, doc.Bytes, s.Bytes, blockBytes)
	}
	return s, nil
}

// checkColumns refuses columns that reach beyond the block.
func checkColumns(columns []protocol.Column, blockBytes int) error {
	if len(columns) > maxColumns {
		return fmt.Errorf("%w: %d columns, at most %d", ErrSchema, len(columns), maxColumns)
	}
	for i := range columns {
		if c := &columns[i]; !fits(c, blockBytes) {
			return fmt.Errorf("%w: column %q does not lie in a block of %d bytes", ErrSchema, c.Name, blockBytes)
		}
	}
	return nil
}

// fits reports whether the last element of a column lies in the block. No stride is negative, so it is the one that
// reaches farthest.
func fits(c *protocol.Column, blockBytes int) bool {
	size := dtypeBytes(c.DType)
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
