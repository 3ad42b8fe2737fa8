package engine

import (
	"errors"
	"testing"
)

// Free runs once: after Close and after the last user has left, in either order.
func TestUsers_FreeOnceWhenClosedAndUnused(t *testing.T) {
	freed := 0
	u := Users{Free: func() error { freed++; return nil }}
	if err := errors.Join(u.Enter(), u.Enter(), u.Leave(), u.Close()); err != nil || freed != 0 {
		t.Fatalf("freed %d times while it is used, %v", freed, err)
	}
	if err := u.Enter(); !errors.Is(err, ErrClosed) {
		t.Errorf("Enter after Close = %v, want %v", err, ErrClosed)
	}
	if err := errors.Join(u.Leave(), u.Close()); err != nil || freed != 1 {
		t.Errorf("freed %d times, %v, want once", freed, err)
	}
}
