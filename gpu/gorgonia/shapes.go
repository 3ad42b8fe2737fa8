package gorgonia

import "errors"

// Bounds on the rows of a graph: fewer do not make it cheaper, more do not make a row cheaper.
const (
	minRows      = 8
	maxActorRows = 1024
)

// shapes keeps the programs of one model over one parameter vector. Their numbers of rows are full, full/2,
// full/4, … down to minRows, so there are at most log2(full/minRows)+1 of them, compiled on first use.
type shapes[F float] struct {
	model    *model
	params   []F
	full     int
	programs map[int]*program[F]
}

func newShapes[F float](m *model, params []F, full int) *shapes[F] {
	return &shapes[F]{model: m, params: params, full: max(full, minRows), programs: map[int]*program[F]{}}
}

// fit returns the smallest program that takes that many rows, or the largest of all.
func (s *shapes[F]) fit(rows int) (*program[F], error) {
	size := s.full
	for size/2 >= max(rows, minRows) {
		size /= 2
	}
	if p, ok := s.programs[size]; ok {
		return p, nil
	}
	p, err := compile(s.model, s.params, size)
	if err == nil {
		s.programs[size] = p
	}
	return p, err
}

func (s *shapes[F]) close() error {
	var errs []error
	for _, p := range s.programs {
		errs = append(errs, p.close())
	}
	clear(s.programs)
	return errors.Join(errs...)
}
