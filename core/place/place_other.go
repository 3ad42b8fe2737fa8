//go:build !linux

package place

import (
	"errors"
	"fmt"
)

// errElsewhere: placing needs Linux.
var errElsewhere = fmt.Errorf("processors and priorities are chosen on Linux alone: %w", errors.ErrUnsupported)

// Available returns an error that wraps errors.ErrUnsupported.
func Available() (Cores, error) { return nil, errElsewhere }

// Pin returns an error that wraps errors.ErrUnsupported.
func (c Cores) Pin() error { return errElsewhere }

// Unpin returns an error that wraps errors.ErrUnsupported.
func (c Cores) Unpin() error { return errElsewhere }

// SetNice returns an error that wraps errors.ErrUnsupported.
func SetNice(int) error { return errElsewhere }

// LowestNice returns an error that wraps errors.ErrUnsupported.
func LowestNice() (int, error) { return 0, errElsewhere }
