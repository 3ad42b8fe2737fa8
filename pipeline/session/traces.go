package session

import (
	"fmt"

	"github.com/rlhost/rlhost/core/trace"
	"github.com/rlhost/rlhost/pipeline/otlp"
)

// traces follow datasets and write their ways. The zero traces follow nothing.
type traces struct {
	tracer *trace.Tracer // nil: none
	to     *otlp.Exporter
}

// openTraces begins to follow datasets where run.traces says so.
func (s *Session) openTraces() error {
	to := s.graph.Run.Traces
	if to == "" {
		return nil
	}
	e, err := otlp.Open(to, otlp.Options{Run: s.run.ID(), Folder: s.run.Dir, Log: s.log})
	if err != nil {
		return fmt.Errorf("run.traces: %w", err)
	}
	s.traces = traces{trace.New(e.Export), e}
	return nil
}

// close writes what waits. The pipeline has been closed.
func (t *traces) close() error {
	if t.to == nil {
		return nil
	}
	t.tracer.Close()
	return t.to.Close()
}
