package plugintest

import (
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
)

// Commit commits a block of an arena that fill, unless it is nil, has written, and returns its handle with one claim.
func Commit(t testing.TB, a *arena.Arena, fill func(block []byte)) hostabi.Handle {
	t.Helper()
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	if fill != nil {
		fill(loan.Bytes())
	}
	h, err := loan.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Give is Commit of a block whose handle is emitted in m. It keeps no claim.
func Give(t testing.TB, to *bus.Signal, m hostabi.Message, a *arena.Arena, fill func(block []byte)) hostabi.Handle {
	t.Helper()
	m.Handle = Commit(t, a, fill)
	if err := to.Emit(m); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(m.Handle); err != nil {
		t.Fatal(err)
	}
	return m.Handle
}
