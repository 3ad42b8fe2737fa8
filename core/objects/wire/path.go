package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	return filepath.Join(folder(), "objects.sock")
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// NamedPath returns the socket of the store of a name, which has up to 64 letters, digits and . _ - in it. Error: ErrLimit.
func NamedPath(name string) (string, error) {
	if !nameRule.MatchString(name) {
		return "", fmt.Errorf("a store called %.80q: %w: want up to 64 letters, digits and . _ -", name, ErrLimit)
	}
	return filepath.Join(folder(), "store-"+name+".sock"), nil
}

// folder is the user's own.
func folder() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "rlhost")
	}
	return filepath.Join("/tmp", "rlhost-"+strconv.Itoa(os.Geteuid()))
}
