package guest

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/files"
)

// DataPath is where a guest finds the folder of data that it was granted.
const DataPath = "/data"

// Error numbers and numbers of WASI preview 1 about files.
const (
	wasiIsDir      = 31
	wasiTooMany    = 33
	wasiNoEntry    = 44
	wasiNotDir     = 54
	wasiReadOnly   = 69
	wasiNotCapable = 76

	dataFD    = 3 // the preopened folder
	maxOpen   = 64
	maxPath   = 4096
	fileDir   = 3
	fileBytes = 4

	direntBytes = 24
	statBytes   = 64
	maxOffset   = 1 << 62
)

// Rights of a descriptor: to read, seek, tell and ask; and the one that says that a file is to be written.
const (
	rightsRead = 1<<1 | 1<<2 | 1<<5 | 1<<13 | 1<<14 | 1<<15 | 1<<18 | 1<<21
	rightWrite = 1 << 6
	openCreate = 1
	openDir    = 2
	openTrunc  = 8
)

// fileCalls are the calls about files of a guest that has a folder of data; a guest that has none finds no descriptor.
func fileCalls() map[string]func(*Instance, []uint64) uint64 {
	calls := map[string]func(*Instance, []uint64) uint64{
		"fd_prestat_get": wasiPrestat, "fd_prestat_dir_name": wasiPrestatName,
		"path_open": wasiOpen, "fd_close": wasiClose, "fd_seek": wasiSeek, "fd_tell": wasiTell,
		"fd_pread": wasiPread, "fd_filestat_get": wasiStat, "path_filestat_get": wasiPathStat, "fd_readdir": wasiReadDir,
		"path_readlink": wasiReadLink,
	}
	for _, name := range []string{"fd_advise", "fd_fdstat_set_flags", "fd_fdstat_set_rights", "fd_sync", "fd_datasync"} {
		calls[name] = wasiOnFile(wasiOK)
	}
	for _, name := range []string{"fd_allocate", "fd_filestat_set_size", "fd_filestat_set_times", "fd_pwrite", "path_create_directory", "path_filestat_set_times",
		"path_link", "path_remove_directory", "path_rename", "path_unlink_file"} {
		calls[name] = wasiOnFile(wasiReadOnly)
	}
	return calls
}

// wasiOnFile answers a call on a descriptor that is open.
func wasiOnFile(code uint64) func(*Instance, []uint64) uint64 {
	return func(i *Instance, stack []uint64) uint64 {
		if i.entry(stack[0]) == nil {
			return wasiBadFD
		}
		return code
	}
}

// data returns the guest's folder, or nil.
func (i *Instance) data() *files.Folder { return i.module.File.Data }

// open returns a descriptor below the folder of data, or nil.
func (i *Instance) open(fd uint64) *OpenFile {
	n := uint64(uint32(fd))
	if n <= dataFD || n-dataFD > uint64(len(i.host.files)) || i.host.files[n-dataFD-1].Entry == 0 {
		return nil
	}
	return &i.host.files[n-dataFD-1]
}

// entry returns what a descriptor is of, or nil.
func (i *Instance) entry(fd uint64) *files.Entry {
	if i.data() == nil {
		return nil
	}
	if uint32(fd) == dataFD {
		return &i.data().Entries[0]
	}
	f := i.open(fd)
	if f == nil {
		return nil
	}
	return &i.data().Entries[f.Entry-1]
}

func wasiPrestat(i *Instance, stack []uint64) uint64 {
	if i.data() == nil || uint32(stack[0]) != dataFD {
		return wasiBadFD
	}
	return max(i.put32(stack[1], 0), i.put32(uint64(uint32(stack[1])+4), uint32(len(DataPath))))
}

func wasiPrestatName(i *Instance, stack []uint64) uint64 {
	if i.data() == nil || uint32(stack[0]) != dataFD {
		return wasiBadFD
	}
	if uint32(stack[2]) < uint32(len(DataPath)) {
		return wasiInval
	}
	b := i.View(uint32(stack[1]), uint32(len(DataPath)))
	if b == nil {
		return wasiFault
	}
	copy(b, DataPath)
	return wasiOK
}

// lookup finds an entry by the path that a guest gives, relative to a descriptor of a folder. No path leads out of the data.
func (i *Instance) lookup(fd, at, n uint64) (place int, code uint64) {
	from := i.entry(fd)
	if from == nil {
		return 0, wasiBadFD
	}
	if !from.Dir {
		return 0, wasiNotDir
	}
	raw := i.View(uint32(at), uint32(n))
	if raw == nil || len(raw) > maxPath {
		return 0, wasiFault
	}
	i.work(len(raw) + serviceWeight)
	name := string(raw)
	if strings.HasPrefix(name, "/") {
		return 0, wasiNotCapable
	}
	clean := path.Join(from.Path, name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return 0, wasiNotCapable
	}
	place, ok := i.data().Find(clean)
	if !ok {
		return 0, wasiNoEntry
	}
	if strings.HasSuffix(name, "/") && !i.data().Entries[place].Dir {
		return 0, wasiNotDir
	}
	return place, wasiOK
}

func wasiOpen(i *Instance, stack []uint64) uint64 {
	flags, rights := uint32(stack[4]), stack[5]
	place, code := i.lookup(stack[0], stack[2], stack[3])
	switch {
	case code == wasiNoEntry && flags&openCreate != 0:
		return wasiReadOnly
	case code != wasiOK:
		return code
	}
	e := &i.data().Entries[place]
	switch {
	case flags&openDir != 0 && !e.Dir:
		return wasiNotDir
	case flags&openTrunc != 0, !e.Dir && rights&rightWrite != 0:
		return wasiReadOnly
	}
	free := 0
	for free < len(i.host.files) && i.host.files[free].Entry != 0 {
		free++
	}
	if free == maxOpen {
		return wasiTooMany
	}
	if free == len(i.host.files) {
		i.host.files = append(i.host.files, OpenFile{})
	}
	i.host.files[free] = OpenFile{Entry: uint32(place) + 1}
	return i.put32(stack[8], uint32(dataFD+1+free))
}

func wasiClose(i *Instance, stack []uint64) uint64 {
	f := i.open(stack[0])
	if f == nil {
		return wasiBadFD
	}
	*f = OpenFile{}
	return wasiOK
}

// readAt copies a file's bytes from a place on into the buffers of a guest, and says how many.
func (i *Instance) readAt(content []byte, at uint64, vectorsAt, n, read uint64) (uint64, uint64) {
	if uint32(n) > maxVectors {
		return 0, wasiInval
	}
	vectors := i.View(uint32(vectorsAt), 8*uint32(n))
	if vectors == nil {
		return 0, wasiFault
	}
	rest := content[min(at, uint64(len(content))):]
	total := 0
	for v := range slices.Chunk(vectors, 8) {
		into := i.View(binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]))
		if into == nil {
			return 0, wasiFault
		}
		total += copy(into[:min(len(into), hostPiece-total)], rest[total:])
	}
	i.work(total + serviceWeight)
	return uint64(total), i.put32(read, uint32(total))
}

func wasiPread(i *Instance, stack []uint64) uint64 {
	e := i.entry(stack[0])
	switch {
	case e == nil:
		return wasiBadFD
	case e.Dir:
		return wasiIsDir
	}
	_, code := i.readAt(e.Content, stack[3], stack[1], stack[2], stack[4])
	return code
}

// readFile is fd_read of a descriptor below the data.
func (i *Instance) readFile(stack []uint64) uint64 {
	f, e := i.open(stack[0]), i.entry(stack[0])
	switch {
	case e == nil:
		return wasiBadFD
	case e.Dir:
		return wasiIsDir
	}
	n, code := i.readAt(e.Content, f.At, stack[1], stack[2], stack[3])
	f.At += n
	return code
}

func wasiSeek(i *Instance, stack []uint64) uint64 {
	f, e := i.open(stack[0]), i.entry(stack[0])
	if f == nil {
		return wasiBadFD
	}
	if e.Dir {
		return wasiIsDir
	}
	base := uint64(0)
	switch uint32(stack[2]) {
	case 0:
	case 1:
		base = f.At
	case 2:
		base = uint64(len(e.Content))
	default:
		return wasiInval
	}
	to := base + stack[1] // which is signed: what is in front of the file is huge
	if to > maxOffset {
		return wasiInval
	}
	f.At = to
	return i.put64(stack[3], f.At)
}

func wasiTell(i *Instance, stack []uint64) uint64 {
	f := i.open(stack[0])
	if f == nil {
		return wasiBadFD
	}
	return i.put64(stack[1], f.At)
}

// describe writes a filestat. Nothing has a time; the number of an entry is its place.
func (i *Instance) describe(at uint64, place int) uint64 {
	b := i.View(uint32(at), statBytes)
	if b == nil {
		return wasiFault
	}
	clear(b)
	e := &i.data().Entries[place]
	binary.LittleEndian.PutUint64(b[8:], uint64(place)+1)
	b[16] = kindOf(e)
	binary.LittleEndian.PutUint64(b[24:], 1)
	binary.LittleEndian.PutUint64(b[32:], uint64(len(e.Content)))
	return wasiOK
}

func kindOf(e *files.Entry) byte {
	if e.Dir {
		return fileDir
	}
	return fileBytes
}

func wasiStat(i *Instance, stack []uint64) uint64 {
	fd := uint32(stack[0])
	if fd < dataFD {
		b := i.View(uint32(stack[1]), statBytes)
		if b == nil {
			return wasiFault
		}
		clear(b)
		b[16] = characterDevice
		return wasiOK
	}
	switch f := i.open(stack[0]); {
	case i.data() == nil:
		return wasiBadFD
	case fd == dataFD:
		return i.describe(stack[1], 0)
	case f == nil:
		return wasiBadFD
	default:
		return i.describe(stack[1], int(f.Entry)-1)
	}
}

func wasiPathStat(i *Instance, stack []uint64) uint64 {
	place, code := i.lookup(stack[0], stack[2], stack[3])
	if code != wasiOK {
		return code
	}
	return i.describe(stack[4], place)
}

// wasiReadLink finds no links: there are none.
func wasiReadLink(i *Instance, stack []uint64) uint64 {
	if _, code := i.lookup(stack[0], stack[1], stack[2]); code != wasiOK {
		return code
	}
	return wasiInval
}

// wasiReadDir writes as many entries of a folder as there is room for, from a cookie on; the last may be cut off.
func wasiReadDir(i *Instance, stack []uint64) uint64 {
	e := i.entry(stack[0])
	switch {
	case e == nil:
		return wasiBadFD
	case !e.Dir:
		return wasiNotDir
	}
	buf := i.View(uint32(stack[1]), uint32(stack[2]))
	if buf == nil {
		return wasiFault
	}
	used, room := 0, len(buf)
	for k := stack[3]; k < uint64(len(e.Children)) && used < room; k++ {
		place := e.Children[k]
		child := &i.data().Entries[place]
		name := path.Base(child.Path)
		var head [direntBytes]byte
		binary.LittleEndian.PutUint64(head[:], k+1)
		binary.LittleEndian.PutUint64(head[8:], uint64(place)+1)
		binary.LittleEndian.PutUint32(head[16:], uint32(len(name)))
		head[20] = kindOf(child)
		used += copy(buf[used:], head[:])
		used += copy(buf[used:], name)
	}
	i.work(used + serviceWeight)
	return i.put32(stack[4], uint32(used))
}
