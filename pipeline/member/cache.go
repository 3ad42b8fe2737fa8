package member

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
)

// Cache is the folder in which a machine keeps modules and folders of data of runs that it joins, by their digests. Processes may share it. What one
// of them uses stays.
type Cache struct {
	Dir   string
	Limit int64         // bytes; of what nobody uses the longest unused goes first
	Age   time.Duration // what nobody has used for so long goes
}

// Codes of files that a host cannot have.
const (
	CodeNoRoom control.Code = "E143"
	CodeDigest control.Code = "E144"
)

func isCode(err error, code control.Code) bool {
	var e *control.Error
	return errors.As(err, &e) && e.Code == code
}

// noRoom is the error of a file that cannot be kept.
func noRoom(x *piece, dir string, why error) error {
	e := control.Errorf(CodeNoRoom, "%s of the run, of %d bytes, cannot be kept in %s: %v", x.Key, x.Size, dir, why)
	e.Help = "make room on that disk, or join with a higher --cache-limit, or with XDG_CACHE_HOME in a folder that has room"
	return e
}

// differs is the error of a file that has another content than the run has named.
func differs(x *piece, why string) error {
	e := control.Errorf(CodeDigest, "%s of the run has not arrived as it was named: %s", x.Key, why)
	e.Help = "join again; where that does not help, resume the run: its host has changed the file or its memory is bad"
	return e
}

// path is where a module or a folder lies once it is there.
func (c *Cache) path(x *piece) string {
	if x.Folder {
		return filepath.Join(c.Dir, x.SHA256+".data")
	}
	return filepath.Join(c.Dir, x.SHA256+".wasm")
}

// ours are the names of what the folder has.
var ours = regexp.MustCompile(`^[0-9a-f]{64}(\.wasm|\.data|(-\d+)?\.part|-\d+\.new)$`)

// take claims what is there until the file that it returns is closed; nil where it is not there, or has another content.
func (c *Cache) take(x *piece) (*os.File, error) {
	path := c.path(x)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, noRoom(x, c.Dir, err)
	}
	if held(f, path, true) && sumOf(x, path) == x.SHA256 {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // it says when it was used, as well as this machine can
		return f, nil
	}
	return nil, f.Close()
}

// held locks an open file, and reports whether it has done so and the path still leads there.
func held(f *os.File, path string, shared bool) bool {
	taken, err := files.TryLock(f, shared)
	if err != nil || !taken {
		return false
	}
	mine, err := f.Stat()
	there, gone := os.Stat(path)
	return err == nil && gone == nil && os.SameFile(mine, there)
}

func sumOf(x *piece, path string) (sum string) {
	if x.Folder {
		sum, _ = files.FolderSHA256(path) // one that cannot be read is not the one
	} else {
		sum, _ = files.SHA256(path)
	}
	return sum
}

// partial is a file of which parts are there.
type partial struct {
	cache *Cache
	file  *os.File // locked: no other process adds to it
	size  int      // that is there
	alone bool     // nobody finds it again
}

// begin opens what an earlier attempt has got of a file, or a new one.
func (c *Cache) begin(x *piece) (*partial, error) {
	_, total, err := c.Tidy(int64(x.Size))
	if err == nil && total+int64(x.Size) > c.Limit {
		err = fmt.Errorf("it may have %d bytes, and %d are in use", c.Limit, total)
	}
	if err == nil {
		err = os.MkdirAll(c.Dir, 0o700)
	}
	if err != nil {
		return nil, noRoom(x, c.Dir, err)
	}
	path := filepath.Join(c.Dir, x.SHA256+".part")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil && held(f, path, false) {
		return c.resume(f, x)
	}
	if err == nil { // another process gets it for its own run, which may be slower, or hang
		err = f.Close()
	}
	if err == nil {
		f, err = os.CreateTemp(c.Dir, x.SHA256+"-*.part")
	}
	if err != nil {
		return nil, noRoom(x, c.Dir, err)
	}
	return &partial{cache: c, file: f, alone: true}, nil
}

// resume continues a file after its last whole part.
func (c *Cache) resume(f *os.File, x *piece) (*partial, error) {
	info, err := f.Stat()
	size := 0
	if err == nil && info.Size() <= int64(x.Size) {
		size = int(info.Size()) / partBytes * partBytes
	}
	if err == nil {
		err = f.Truncate(int64(size))
	}
	if err != nil {
		return nil, noRoom(x, c.Dir, errors.Join(err, f.Close()))
	}
	return &partial{cache: c, file: f, size: size}, nil
}

// add writes another part.
func (f *partial) add(part []byte) error {
	n, err := f.file.WriteAt(part, int64(f.size))
	f.size += n
	return err
}

// end closes the file. What can be continued stays.
func (f *partial) end(err error) error {
	if f.alone || isCode(err, CodeDigest) || isCode(err, CodeNoRoom) {
		_ = os.Remove(f.file.Name()) // it may be in its place by now
	}
	return f.file.Close()
}

// keep puts a file that is complete into its place, if it is what was named.
func (c *Cache) keep(f *partial, x *piece) (err error) {
	if x.Folder {
		return c.keepFolder(f, x)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f.file, 0, int64(x.Size))); err != nil {
		return noRoom(x, c.Dir, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != x.SHA256 {
		return differs(x, fmt.Sprintf("its SHA-256 is %s, the run has named %s", got, x.SHA256))
	}
	if err := errors.Join(f.file.Sync(), os.Rename(f.file.Name(), c.path(x))); err != nil {
		return noRoom(x, c.Dir, err)
	}
	return nil
}

// keepFolder makes the folder of an archive.
func (c *Cache) keepFolder(f *partial, x *piece) error {
	content := make([]byte, x.Size)
	if _, err := f.file.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
		return noRoom(x, c.Dir, err)
	}
	folder, err := files.FromArchive(content)
	if err != nil {
		return differs(x, err.Error())
	}
	if folder.Digest != x.SHA256 {
		return differs(x, fmt.Sprintf("its digest is %s, the run has named %s", folder.Digest, x.SHA256))
	}
	temp, err := os.MkdirTemp(c.Dir, x.SHA256+"-*.new")
	if err != nil {
		return noRoom(x, c.Dir, err)
	}
	to := filepath.Join(temp, "data")
	if err = folder.Write(to); err == nil {
		err = replaceFolder(to, c.path(x), filepath.Join(temp, "former"))
	}
	if err = errors.Join(err, os.RemoveAll(temp)); err != nil {
		return noRoom(x, c.Dir, err)
	}
	return os.Remove(f.file.Name())
}

// replaceFolder moves a folder to its place, and what is there to former.
func replaceFolder(from, to, former string) error {
	err := os.Rename(to, former)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = os.Rename(from, to)
	}
	if errors.Is(err, fs.ErrExist) { // another process has put it there just now
		return nil
	}
	return err
}

// Tidy removes what nobody has used for long, and more where else there is no room for that many further bytes. It returns how many bytes have gone,
// and how many are left. Files of others in the folder stay.
func (c *Cache) Tidy(room int64) (removed, left int64, err error) {
	list, err := c.entries()
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		left += e.size
	}
	for _, e := range list {
		if time.Since(e.used) < c.Age && left+room <= c.Limit || !e.remove() {
			continue
		}
		removed, left = removed+e.size, left-e.size
	}
	return removed, left, nil
}

// cached is a file or a folder in the cache.
type cached struct {
	path string
	size int64
	used time.Time
}

// entries lists what the folder has, the longest unused first.
func (c *Cache) entries() (list []cached, err error) {
	names, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		info, gone := name.Info()
		if gone != nil || !ours.MatchString(name.Name()) {
			continue
		}
		e := cached{path: filepath.Join(c.Dir, name.Name()), used: info.ModTime()}
		_ = filepath.WalkDir(e.path, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, gone := d.Info(); gone == nil {
					e.size += info.Size()
				}
			}
			return nil // what cannot be read has no size
		})
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b cached) int { return a.used.Compare(b.used) })
	return list, err
}

// remove removes an entry, and reports whether it is gone. One that a process uses stays.
func (e *cached) remove() bool {
	f, err := os.Open(e.path)
	if err != nil {
		return false
	}
	defer f.Close()
	return held(f, e.path, false) && os.RemoveAll(e.path) == nil
}
