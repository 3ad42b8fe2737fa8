package wire

import (
	"os"
	"path/filepath"
	"strconv"
)

// PathVariable names the environment variable with the path of the server's socket.
const PathVariable = "RLHOST_OBJECTS"

// DefaultPath returns the default socket of servers and clients: the value of PathVariable, else one in a folder of the
// user's own.
func DefaultPath() string {
	if path := os.Getenv(PathVariable); path != "" {
		return path
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "rlhost", "objects.sock")
	}
	return filepath.Join("/tmp", "rlhost-"+strconv.Itoa(os.Geteuid()), "objects.sock")
}
