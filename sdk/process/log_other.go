//go:build !linux

package process

import "errors"

func redirect() error { return errors.ErrUnsupported }
