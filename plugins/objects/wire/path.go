package wire

import (
	"os"
	"path/filepath"
	"strconv"
)

// PathVariable names the environment variable that says where objects are served.
const PathVariable = "RLHOST_OBJECTS"

// DefaultPath returns where servers and clients meet if nobody says otherwise: what PathVariable says, else a folder of
// the user's own.
func DefaultPath() string {
	if path := os.Getenv(PathVariable); path != "" {
		return path
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "rlhost", "objects.sock")
	}
	return filepath.Join("/tmp", "rlhost-"+strconv.Itoa(os.Geteuid()), "objects.sock")
}
