//go:build unix

package runs

import "golang.org/x/sys/unix"

// freeAt returns what a user may write where a folder is.
func freeAt(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(min(fs.Bavail*uint64(fs.Bsize), 1<<62)), nil
}
