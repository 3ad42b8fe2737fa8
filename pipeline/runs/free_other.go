//go:build !unix

package runs

import "errors"

func freeAt(string) (int64, error) { return 0, errors.ErrUnsupported }
