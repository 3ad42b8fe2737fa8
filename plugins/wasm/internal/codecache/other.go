//go:build !linux

package codecache

import "errors"

// Cache is a placeholder: Open makes none.
type Cache struct{}

// Open fails.
func Open(string) (*Cache, error) { return nil, errors.ErrUnsupported }

// Path returns nothing.
func (*Cache) Path(string) string { return "" }

// Name returns nothing.
func (*Cache) Name(string, []byte) string { return "" }

// Find fails.
func (*Cache) Find(string) (*Code, error) { return nil, errors.ErrUnsupported }

// Keep fails.
func (*Cache) Keep(string, *Code) error { return errors.ErrUnsupported }

// Marked is false.
func (*Cache) Marked(string) bool { return false }

// Mark fails.
func (*Cache) Mark(string) error { return errors.ErrUnsupported }

// Close does nothing.
func (*Cache) Close() error { return nil }

// Missing is false.
func Missing(error) bool { return false }
