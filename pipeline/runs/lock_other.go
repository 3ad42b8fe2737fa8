//go:build !unix

package runs

import (
	"errors"
	"fmt"
	"os"
)

func processRuns(int) bool { return true }

// flock is not supported on systems that rlhost does not run on.
func flock(*os.File, bool) (bool, error) {
	return false, fmt.Errorf("file locks: %w", errors.ErrUnsupported)
}
