//go:build !linux

package ipc

import "errors"

// WhenEnds is for Linux alone.
func WhenEnds(int, func()) error { return errors.ErrUnsupported }
