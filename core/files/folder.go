package files

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Limits of a Folder.
const (
	MaxFolderEntries = 4096     // files and folders
	MaxFolderBytes   = 64 << 20 // of all files together
)

// Folder is the content of a folder as it was when it was read. It is not changed.
type Folder struct {
	Digest  string // SHA-256 of all paths and contents, in hexadecimal
	Entries []Entry
	at      map[string]int // place in Entries by path
}

// Entry is a file or a folder in a Folder. The first entry is the folder itself.
type Entry struct {
	Path     string // with slashes, relative to the folder, which is "."
	Dir      bool
	Content  []byte // of a file
	Children []int  // of a folder: their places in Entries, in the order of their names
}

// ReadFolder reads a folder with all that is below it: files and folders alone, and nothing outside it.
func ReadFolder(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, errors.New("it is no folder")
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, size := &Folder{at: map[string]int{}}, 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if len(f.Entries) > MaxFolderEntries {
			return fmt.Errorf("it has more than %d files and folders", MaxFolderEntries)
		}
		e := Entry{Path: name, Dir: d.IsDir()}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s in it is a symbolic link", name)
		case !e.Dir && !d.Type().IsRegular():
			return fmt.Errorf("%s in it is a %s", name, kind(d.Type()))
		case !e.Dir:
			if e.Content, err = readBelow(root, name, MaxFolderBytes-size); err != nil {
				return err
			}
			size += len(e.Content)
		}
		f.add(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.Digest = f.sum()
	return f, nil
}

// readBelow reads a file of a folder, of at most limit bytes. It may have become something else since it was listed.
func readBelow(root *os.Root, name string, limit int) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s in it changed while it was read", name))
	}
	content, err := readAll(file, int64(limit)+1)
	if err == nil && len(content) > limit {
		err = fmt.Errorf("its files have more than %d MiB", MaxFolderBytes>>20)
	}
	return content, err
}

func (f *Folder) add(e Entry) {
	place := len(f.Entries)
	f.at[e.Path] = place
	f.Entries = append(f.Entries, e)
	if place > 0 {
		of := &f.Entries[f.at[path.Dir(e.Path)]]
		of.Children = append(of.Children, place)
	}
}

// Find returns the place of an entry by its path; ok is false if there is none.
func (f *Folder) Find(name string) (place int, ok bool) {
	place, ok = f.at[name]
	return place, ok
}

// sum makes the digest. The order of entries is that of the walk, which sorts names.
func (f *Folder) sum() string {
	all := sha256.New()
	for i := range f.Entries {
		e := &f.Entries[i]
		own := sha256.Sum256(e.Content)
		head := binary.LittleEndian.AppendUint64(nil, uint64(len(e.Path)))
		head = append(head, e.Path...)
		if e.Dir {
			head = append(head, 1)
		} else {
			head = append(append(head, 0), own[:]...)
		}
		_, _ = all.Write(head) // a hash takes everything
	}
	return hex.EncodeToString(all.Sum(nil))
}

// FolderSHA256 returns the digest of a folder, or an error; see ReadFolder.
func FolderSHA256(dir string) (string, error) {
	f, err := ReadFolder(dir)
	if err != nil {
		return "", err
	}
	return f.Digest, nil
}

// Write makes a folder with the content. dir must not exist; its parent does.
func (f *Folder) Write(dir string) error {
	for i := range f.Entries {
		e := &f.Entries[i]
		to := filepath.Join(dir, filepath.FromSlash(e.Path))
		var err error
		if e.Dir {
			err = os.Mkdir(to, 0o755)
		} else {
			err = writeNew(to, e.Content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that does not exist, onto the disk.
func writeNew(to string, content []byte) error {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}
