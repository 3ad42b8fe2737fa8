package trajectory

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// Names are the names of the float64 values that a block consists of: statistics, say. They are an arena.Schema.
type Names []string

// Document returns the description for other processes.
func (n Names) Document() *native.Schema {
	return &native.Schema{Kind: native.KindNames, Names: n}
}

// DecodeSchema returns the schema that a document describes, for blocks of the given size: a *Schema, Names,
// a *native.Schema whose columns lie within the block, or nil for none. Errors wrap native.ErrSchema.
func DecodeSchema(doc *native.Schema, blockBytes int) (arena.Schema, error) {
	if doc == nil {
		return nil, nil
	}
	switch doc.Kind {
	case native.KindTrajectory:
		return decodeTrajectory(doc, blockBytes)
	case native.KindNames:
		if len(doc.Names) > blockBytes/8 {
			return nil, fmt.Errorf("%w: %d names for blocks of %d bytes", native.ErrSchema, len(doc.Names), blockBytes)
		}
		return Names(slices.Clone(doc.Names)), nil
	case native.KindTensors:
		return doc, native.CheckColumns(doc.Columns, blockBytes)
	}
	return nil, fmt.Errorf("%w: kind %q", native.ErrSchema, doc.Kind)
}

// Document returns the description for other processes.
func (s *Schema) Document() *native.Schema {
	doc := &native.Schema{
		Kind: native.KindTrajectory, Spec: native.EncodeSpec(&s.Spec),
		Steps: s.Shape.Steps, Envs: s.Shape.Envs, SoA: s.Shape.SoA, Policies: s.Shape.Policies, Granted: s.Shape.Granted, Memory: native.Memory(s.Shape.Memory),
		GuestBytes: s.GuestBytes, Bytes: s.Bytes,
	}
	for place, group := range s.Shape.Groups[:len(s.policies)] {
		if group != 0 {
			doc.Groups = append(doc.Groups, make([]int, place+1-len(doc.Groups))...)
			doc.Groups[place] = int(group)
		}
	}
	for _, l := range s.columns {
		doc.Columns = append(doc.Columns, native.Column{
			Name: l.Column.String(), DType: l.DType.String(), Rows: l.Rows, Envs: l.Envs, Elems: l.Elems,
			Shape: l.Shape, Offset: l.Offset, StrideT: l.StrideT, StrideEnv: l.StrideEnv, StrideElem: l.StrideElem,
		})
	}
	return doc
}

func decodeTrajectory(doc *native.Schema, blockBytes int) (*Schema, error) {
	if doc.Spec == nil {
		return nil, fmt.Errorf("%w: a trajectory without the environment's description", native.ErrSchema)
	}
	spec, err := doc.Spec.Decode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", native.ErrSchema, err)
	}
	has := func(c Column) bool {
		return slices.ContainsFunc(doc.Columns, func(x native.Column) bool { return x.Name == c.String() })
	}
	shape := Shape{Steps: doc.Steps, Envs: doc.Envs, SoA: doc.SoA, Policies: doc.Policies, Versions: has(PlayedVersion), Granted: doc.Granted,
		Memory: Memory(doc.Memory)}
	shape.Shaped = has(PastShaped) || has(ShapedReward) && !shape.grants(ShapedReward)
	for place, group := range doc.Groups {
		if place >= MaxPolicies || group < 0 || group >= hostabi.MaxGroups {
			return nil, fmt.Errorf("%w: policy %d plays group %d", native.ErrSchema, place, group)
		}
		shape.Groups[place] = uint8(group)
	}
	s, err := NewSchema(spec, shape)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", native.ErrSchema, err)
	}
	if s.Bytes != doc.Bytes || s.GuestBytes != doc.GuestBytes || s.Bytes > blockBytes {
		return nil, fmt.Errorf("%w: a trajectory of %d bytes, laid out here it has %d, and blocks have %d",
			native.ErrSchema, doc.Bytes, s.Bytes, blockBytes)
	}
	return s, nil
}
