package codecache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// Cache keeps compiled modules in a folder.
type Cache struct {
	dir  *os.File // paths begin at it, so that the folder cannot be replaced
	key  []byte
	salt string // what compiled code depends on besides compiler and module
}

const (
	// Folder is a Cache's folder within the one that Open is given.
	Folder = "compiled"
	// KeyFile has the key, in that folder.
	KeyFile  = "key"
	keyBytes = 32
	// entryMagic begins every entry; the sum, wazero's name for the code, and the code itself follow.
	entryMagic = "rlhost-compiled-1\n"
	// HeadBytes is how much of an entry comes before the code.
	HeadBytes = len(entryMagic) + sha256.Size + NameBytes
	maxEntry  = 512 << 20

	temporaryAge = time.Hour // older ones were left by a killed process
)

// Open opens or makes the cache in a folder, or says why there is none.
func Open(parent string) (*Cache, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(parent, Folder)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	c := &Cache{dir: os.NewFile(uintptr(fd), path), salt: fmt.Sprintf("%s %+v %+v", entryMagic, cpu.X86, cpu.ARM64)}
	err = private(c.dir, unix.S_IFDIR)
	if err == nil {
		c.sweep()
		err = c.openKey()
	}
	if err != nil {
		return nil, errors.Join(err, c.dir.Close())
	}
	return c, nil
}

// private rejects a file of another kind, of another user, or that others can access.
func private(f *os.File, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != kind:
		return fmt.Errorf("%s is of another kind than rlhost makes it", f.Name())
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d", f.Name(), st.Uid)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%s is open to other users (mode %#o)", f.Name(), st.Mode&0o777)
	}
	return nil
}

// Path is the path of something in the folder, whatever happens to the folders around it.
func (c *Cache) Path(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", c.dir.Fd(), name)
}

// open opens a file of the folder for reading, if this user made it.
func (c *Cache) open(name string) (*os.File, error) {
	// O_NONBLOCK: a FIFO may have no other end
	fd, err := unix.Openat(int(c.dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(c.dir.Name(), name), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(c.dir.Name(), name))
	if err := private(f, unix.S_IFREG); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write makes a file of the folder. flags are renameat2's: with unix.RENAME_NOREPLACE an existing file stays.
func (c *Cache) write(name string, flags uint, fill func(f *os.File) error) error {
	temporary := TemporaryPrefix + rand.Text()
	fd, err := unix.Openat(int(c.dir.Fd()), temporary, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: filepath.Join(c.dir.Name(), temporary), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(c.dir.Name(), name))
	err = errors.Join(fill(f), f.Close())
	if err == nil {
		err = unix.Renameat2(int(c.dir.Fd()), temporary, int(c.dir.Fd()), name, flags)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(int(c.dir.Fd()), temporary, 0))
	}
	return nil
}

// openKey reads the key, or makes one. Entries under a previous key are then invalid.
func (c *Cache) openKey() error {
	bad := c.readKey()
	if bad == nil {
		return nil
	}
	var flags uint
	if Missing(bad) {
		flags = unix.RENAME_NOREPLACE // another process may make one at the same time
	}
	fresh := make([]byte, keyBytes)
	_, _ = rand.Read(fresh) // it never fails
	err := c.write(KeyFile, flags, func(f *os.File) error {
		_, err := f.Write(fresh)
		return err
	})
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return c.readKey()
}

func (c *Cache) readKey() error {
	f, err := c.open(KeyFile)
	if err != nil {
		return err
	}
	defer f.Close()
	key, err := io.ReadAll(io.LimitReader(f, keyBytes+1))
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s has another size than a key", f.Name())
	}
	if err == nil {
		c.key = key
	}
	return err
}

// sweep removes what killed processes left.
func (c *Cache) sweep() {
	list, err := os.ReadDir(c.Path(""))
	if err != nil {
		return // the next read or write here will say so
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), TemporaryPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > temporaryAge {
			_ = os.RemoveAll(c.Path(e.Name()))
		}
	}
}

// Name returns the name of the entry for a compiler's output for a module.
func (c *Cache) Name(compiler string, module []byte) string {
	sum := sha256.New()
	_, _ = io.WriteString(sum, c.salt+compiler) // sums never fail
	_, _ = sum.Write(module)
	return hex.EncodeToString(sum.Sum(nil))
}

// Find returns the compiled code of a module, in a memory file of this process alone. It is fs.ErrNotExist if there is
// none; any other error says why an entry is not used.
func (c *Cache) Find(name string) (*Code, error) {
	f, err := c.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, HeadBytes)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("%s is cut off", f.Name())
	}
	fd, err := unix.MemfdCreate("rlhost-compiled", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	code := &Code{Name: string(head[len(entryMagic)+sha256.Size:]), File: os.NewFile(uintptr(fd), "rlhost-compiled")}
	sum := c.sum(name, code.Name)
	n, err := io.Copy(io.MultiWriter(sum, code.File), io.LimitReader(f, maxEntry+1))
	if err == nil && (n > maxEntry || string(head[:len(entryMagic)]) != entryMagic ||
		!hmac.Equal(sum.Sum(nil), head[len(entryMagic):][:sha256.Size])) {
		err = fmt.Errorf("%s is damaged, or not this user's rlhost wrote it", f.Name())
	}
	if err != nil {
		return nil, errors.Join(err, code.Close())
	}
	return code, nil
}

// Keep writes an entry.
func (c *Cache) Keep(name string, code *Code) error {
	return c.write(name, 0, func(f *os.File) error {
		sum := c.sum(name, code.Name)
		head := append([]byte(entryMagic), make([]byte, sha256.Size)...)
		if _, err := f.Write(append(head, code.Name...)); err != nil {
			return err
		}
		if _, err := io.Copy(io.MultiWriter(sum, f), io.NewSectionReader(code.File, 0, maxEntry)); err != nil {
			return err
		}
		_, err := f.WriteAt(sum.Sum(nil), int64(len(entryMagic)))
		return err
	})
}

// Marked reports whether Mark has been called for a name.
func (c *Cache) Marked(name string) bool {
	f, err := c.open(name)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was read
	return true
}

// Mark keeps a name without content.
func (c *Cache) Mark(name string) error { return c.write(name, 0, func(*os.File) error { return nil }) }

// sum begins the sum of an entry.
func (c *Cache) sum(entry, code string) hash.Hash {
	sum := hmac.New(sha256.New, c.key)
	_, _ = io.WriteString(sum, entry+code) // sums never fail; both have a fixed length
	return sum
}

// Close forgets the folder.
func (c *Cache) Close() error { return c.dir.Close() }

// Missing reports whether Find found no entry.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
