package ipc

import (
	"fmt"
	"os"
	"syscall"
)

// privateFolder makes a folder for sockets, or checks that the existing one is this user's and no other user may
// enter it.
func privateFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case !ok || int64(owner.Uid) != int64(os.Geteuid()):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others may enter %s (mode %#o): chmod 700 it, or serve elsewhere", dir, info.Mode().Perm())
	}
	return nil
}
