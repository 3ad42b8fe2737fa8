//go:build !linux

package wasm

import "errors"

type imageFile struct {
	fd      int
	content []byte
}

func newImageFile([]byte) (*imageFile, error) { return nil, errors.ErrUnsupported }

func (f *imageFile) close() {}

func sealed(int, int64) error { return errors.ErrUnsupported }

type segmentID struct{}

func segmentOf(int) (segmentID, error) { return segmentID{}, errors.ErrUnsupported }
