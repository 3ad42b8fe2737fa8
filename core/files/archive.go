package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// ErrArchive is the error of bytes that Archive has not made.
var ErrArchive = errors.New("not an archive of a folder")

// headBytes is what an archive has of an entry beside its path and its content: the sizes of both, and whether it is a folder.
const headBytes = 8 + 8 + 1

// MaxArchive bounds the bytes of an Archive.
const MaxArchive = MaxFolderBytes + (MaxFolderEntries+1)*(headBytes+4096)

// Archive returns the content as bytes, for a way to another machine. The same content always has the same bytes.
func (f *Folder) Archive() []byte {
	size := 0
	for i := range f.Entries {
		size += headBytes + len(f.Entries[i].Path) + len(f.Entries[i].Content)
	}
	to := make([]byte, 0, size)
	for i := range f.Entries {
		e := &f.Entries[i]
		to = binary.LittleEndian.AppendUint64(to, uint64(len(e.Path)))
		to = binary.LittleEndian.AppendUint64(to, uint64(len(e.Content)))
		kind := byte(0)
		if e.Dir {
			kind = 1
		}
		to = append(append(append(to, kind), e.Path...), e.Content...)
	}
	return to
}

// FromArchive returns the folder of an Archive, which it shares memory with. Bytes of a stranger are refused or give a folder whose paths all lie in it;
// its Digest is made of them.
func FromArchive(b []byte) (*Folder, error) {
	f := &Folder{at: map[string]int{}}
	for len(b) > 0 {
		if len(b) < headBytes || len(f.Entries) > MaxFolderEntries {
			return nil, ErrArchive
		}
		name, size, kind := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), b[16]
		if b = b[headBytes:]; name > uint64(len(b)) || size > uint64(len(b))-name || kind > 1 {
			return nil, ErrArchive
		}
		e := Entry{Path: string(b[:name]), Dir: kind == 1}
		if !e.Dir {
			e.Content = b[name : name+size : name+size]
		}
		if err := f.follows(&e, size); err != nil {
			return nil, err
		}
		f.add(e)
		b = b[name+size:]
	}
	if len(f.Entries) == 0 {
		return nil, ErrArchive
	}
	f.Digest = f.sum()
	return f, nil
}

// follows returns why an entry of an archive cannot come next: the folder itself comes first, each other one after the folder that it lies in.
func (f *Folder) follows(e *Entry, size uint64) error {
	bad := func(why string) error { return fmt.Errorf("%w: %.80q %s", ErrArchive, e.Path, why) }
	if e.Dir && size > 0 {
		return bad("is a folder with content")
	}
	if len(f.Entries) == 0 {
		if e.Path != "." || !e.Dir {
			return bad("is first")
		}
		return nil
	}
	if _, twice := f.at[e.Path]; twice || !fs.ValidPath(e.Path) || strings.ContainsAny(e.Path, "\\\x00") {
		return bad("is no path in it")
	}
	if above, ok := f.at[path.Dir(e.Path)]; !ok || !f.Entries[above].Dir {
		return bad("is in no folder of it")
	}
	return nil
}
