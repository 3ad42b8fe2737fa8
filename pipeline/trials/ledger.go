package trials

import (
	"time"

	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
)

// ledger is the history of a search with the journal that it comes from.
type ledger struct {
	history *search.History
	journal *runs.Journal
	observe func(r *search.Record, h *search.History) // or nil
}

// add folds a record and writes it. After an error about the disk the history is ahead of the journal, and the search ends.
func (l *ledger) add(r *search.Record) error {
	r.Time = time.Now().UTC().Truncate(time.Millisecond)
	if err := l.history.Add(r); err != nil {
		return err
	}
	line, err := r.Line()
	if err != nil {
		return err
	}
	if err := l.journal.Append(line); err != nil {
		return err
	}
	if l.observe != nil {
		l.observe(r, l.history)
	}
	return nil
}
