package guest

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// Places in the guest's memory that calls are given.
const (
	pathAt    = 0x4000
	resultAt  = 0x6000
	vectorsAt = 0x6100
	bufferAt  = 0x9000
	nowhere   = 0xfffffff0
)

// The numbers stand in the specification of WASI preview 1.
func TestFiles_NumbersAreThoseOfWASI(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"success", wasiOK, 0}, {"badf", wasiBadFD, 8}, {"fault", wasiFault, 21}, {"inval", wasiInval, 28}, {"isdir", wasiIsDir, 31}, {"mfile", wasiTooMany, 33}, {"noent", wasiNoEntry, 44},
		{"nosys", wasiNoSys, 52}, {"notdir", wasiNotDir, 54}, {"rofs", wasiReadOnly, 69}, {"notcapable", wasiNotCapable, 76},
		{"character_device", characterDevice, 2}, {"directory", fileDir, 3}, {"regular_file", fileBytes, 4}, {"dirent", direntBytes, 24}, {"filestat", statBytes, 64},
		{"oflags creat", openCreate, 1}, {"oflags directory", openDir, 2}, {"oflags trunc", openTrunc, 8}, {"rights fd_write", rightWrite, 1 << 6},
		// fd_read, fd_seek, fd_tell, path_open, fd_readdir, path_readlink, path_filestat_get, fd_filestat_get
		{"rights", rightsRead, 0x24e026},
		{"descriptors", maxOpen, 64}, {"bytes of a path", maxPath, 4096}, {"furthest place", maxOffset, 1 << 62},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
}

// disk calls WASI as a guest with a folder of data does.
type disk struct {
	t *testing.T
	*Instance
	calls map[string]hostCall
}

// newDisk has the files maps/a.txt, of ten digits, maps/empty.txt, which has nothing, and z.bin, which is longer than a read.
func newDisk(t *testing.T) *disk {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "maps"), 0o755))
	for name, content := range map[string]string{"maps/a.txt": "0123456789", "maps/empty.txt": "", "z.bin": strings.Repeat("z", hostPiece+7)} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	source := env.Source{Data: dir}
	source = source.ReadData("")
	i, err := preparedFrom(t, wasmtest.Guest{Pages: 40}, source).NewInstance(describe)
	must(t, err)
	t.Cleanup(i.Close)
	i.Begin(time.Hour) // calls of the host burn fuel within a request
	return &disk{t, i, wasiCalls()}
}

// call makes a call and returns its error number.
func (d *disk) call(name string, args ...uint64) uint64 {
	stack := make([]uint64, 10)
	copy(stack, args)
	d.calls[name](d.Instance, stack)
	return stack[0]
}

// want makes a call and checks its error number.
func (d *disk) want(code uint64, name string, args ...uint64) {
	d.t.Helper()
	if got := d.call(name, args...); got != code {
		d.t.Errorf("%s%v = %d, want %d", name, args, got, code)
	}
}

// result returns what a call has written at resultAt.
func (d *disk) result() uint32 { return binary.LittleEndian.Uint32(d.View(resultAt, 4)) }

// path opens a path below a descriptor.
func (d *disk) path(fd uint64, path string, flags, rights uint64) uint64 {
	copy(d.View(pathAt, uint32(len(path))), path)
	return d.call("path_open", fd, 0, pathAt, uint64(len(path)), flags, rights, 0, 0, resultAt)
}

// opened returns the descriptor of a path below the data.
func (d *disk) opened(path string) uint64 {
	d.t.Helper()
	if code := d.path(dataFD, path, 0, 0); code != wasiOK {
		d.t.Fatalf("open %q = %d", path, code)
	}
	return uint64(d.result())
}

// vectors writes buffers for a read, one after the other.
func (d *disk) vectors(sizes ...uint32) {
	b, at := d.View(vectorsAt, uint32(8*len(sizes))), uint32(bufferAt)
	for k, n := range sizes {
		binary.LittleEndian.PutUint32(b[8*k:], at)
		binary.LittleEndian.PutUint32(b[8*k+4:], n)
		at += n
	}
	clear(d.View(bufferAt, at-bufferAt))
}

// read reads into buffers of those sizes, and returns their contents.
func (d *disk) read(fd uint64, sizes ...uint32) string {
	d.t.Helper()
	d.vectors(sizes...)
	d.want(wasiOK, "fd_read", fd, vectorsAt, uint64(len(sizes)), resultAt)
	return string(d.View(bufferAt, d.result()))
}

func TestFiles_TheFolderIsPreopened(t *testing.T) {
	d := newDisk(t)
	copy(d.View(resultAt, 8), "\xff\xff\xff\xff\xff\xff\xff\xff")
	d.want(wasiOK, "fd_prestat_get", dataFD, resultAt)
	if got := d.View(resultAt, 8); !bytes.Equal(got, []byte{0, 0, 0, 0, byte(len(DataPath)), 0, 0, 0}) {
		t.Errorf("it is described by %v", got)
	}
	d.want(wasiOK, "fd_prestat_dir_name", dataFD, bufferAt, uint64(len(DataPath)))
	if got := string(d.View(bufferAt, uint32(len(DataPath)))); got != DataPath {
		t.Errorf("it is called %q", got)
	}
	d.want(wasiInval, "fd_prestat_dir_name", dataFD, bufferAt, uint64(len(DataPath)-1))
	d.want(wasiFault, "fd_prestat_dir_name", dataFD, nowhere, uint64(len(DataPath)))
	d.want(wasiFault, "fd_prestat_get", dataFD, nowhere)
	d.want(wasiFault, "fd_prestat_get", dataFD, uint64(len(d.Mem.Bytes()))-4)
	for _, fd := range []uint64{2, 4} {
		d.want(wasiBadFD, "fd_prestat_get", fd, resultAt)
		d.want(wasiBadFD, "fd_prestat_dir_name", fd, bufferAt, 5)
	}
}

func TestFiles_AGuestWithoutDataFindsNoDescriptor(t *testing.T) {
	i, err := prepared(t, wasmtest.Guest{}).NewInstance(describe)
	must(t, err)
	t.Cleanup(i.Close)
	d := &disk{t, i, wasiCalls()}
	for name := range fileCalls() {
		d.want(wasiBadFD, name, dataFD, resultAt, 5)
	}
	d.want(wasiBadFD, "fd_fdstat_get", dataFD, resultAt)
	d.want(wasiBadFD, "fd_read", dataFD, resultAt)
}

func TestFiles_Open(t *testing.T) {
	d := newDisk(t)
	file := d.opened("maps/a.txt")
	folder := d.opened("maps")
	for _, c := range []struct {
		fd            uint64
		path          string
		flags, rights uint64
		want          uint64
	}{
		{dataFD, "maps/a.txt", 0, 0, wasiOK}, {dataFD, "maps/", 0, 0, wasiOK}, {dataFD, ".", 0, 0, wasiOK}, {dataFD, "", 0, 0, wasiOK}, {dataFD, "maps/../z.bin", 0, 0, wasiOK},
		{folder, "a.txt", 0, 0, wasiOK}, {folder, "../z.bin", 0, 0, wasiOK}, {folder, "z.bin", 0, 0, wasiNoEntry}, {folder, "../..", 0, 0, wasiNotCapable}, {folder, "../../x", 0, 0, wasiNotCapable},
		{file, "a.txt", 0, 0, wasiNotDir}, {dataFD + 60, "maps", 0, 0, wasiBadFD}, {1, "maps", 0, 0, wasiBadFD},
		{dataFD, "/maps", 0, 0, wasiNotCapable}, {dataFD, "..", 0, 0, wasiNotCapable}, {dataFD, "../maps", 0, 0, wasiNotCapable}, {dataFD, "..maps", 0, 0, wasiNoEntry},
		{dataFD, "maps/a.txt/", 0, 0, wasiNotDir}, {dataFD, "maps/b.txt", 0, 0, wasiNoEntry}, {dataFD, "maps/b.txt", openCreate, 0, wasiReadOnly}, {dataFD, "maps/a.txt", openCreate, 0, wasiOK},
		{dataFD, "maps/a.txt/", openCreate, 0, wasiNotDir},
		{dataFD, "maps", openDir, 0, wasiOK}, {dataFD, "maps/a.txt", openDir, 0, wasiNotDir},
		{dataFD, "maps/a.txt", openTrunc, 0, wasiReadOnly}, {dataFD, "maps/a.txt", 0, rightWrite, wasiReadOnly}, {dataFD, "maps", 0, rightWrite, wasiOK},
		{dataFD, strings.Repeat("./", maxPath/2-1) + "./", 0, 0, wasiOK}, {dataFD, strings.Repeat("./", maxPath/2) + ".", 0, 0, wasiFault},
	} {
		if got := d.path(c.fd, c.path, c.flags, c.rights); got != c.want {
			t.Errorf("open %q below %d with flags %d and rights %d = %d, want %d", c.path, c.fd, c.flags, c.rights, got, c.want)
		}
	}
	d.want(wasiFault, "path_open", dataFD, 0, nowhere, 20, 0, 0, 0, 0, resultAt)
	copy(d.View(pathAt, 4), "maps")
	d.want(wasiFault, "path_open", dataFD, 0, pathAt, 4, 0, 0, 0, 0, nowhere)
}

func TestFiles_DescriptorsAreTheLowestThatAreFree(t *testing.T) {
	d := newDisk(t)
	for k := range maxOpen {
		if fd := d.opened("maps/a.txt"); fd != uint64(dataFD+1+k) {
			t.Fatalf("the descriptor %d comes after %d others", fd, k)
		}
	}
	if code := d.path(dataFD, "maps", 0, 0); code != wasiTooMany {
		t.Errorf("one more = %d, want %d", code, wasiTooMany)
	}
	d.want(wasiOK, "fd_close", 9)
	d.want(wasiBadFD, "fd_close", 9)
	d.want(wasiBadFD, "fd_tell", 9, resultAt)
	d.want(wasiOK, "fd_close", 6)
	for _, want := range []uint64{6, 9} {
		if fd := d.opened("z.bin"); fd != want {
			t.Errorf("the next descriptor is %d, want %d", fd, want)
		}
	}
	for _, fd := range []uint64{0, 2, dataFD, dataFD + maxOpen + 1} {
		d.want(wasiBadFD, "fd_close", fd)
	}
	d.want(wasiOK, "fd_close", dataFD+maxOpen)
}

// A guest that opens and closes again and again takes no more of the host.
func TestFiles_ClosedDescriptorsTakeNothing(t *testing.T) {
	d := newDisk(t)
	kept := d.opened("maps")
	for range 1000 {
		d.want(wasiOK, "fd_close", d.opened("z.bin"))
	}
	if n := len(d.host.files); n != 2 {
		t.Errorf("the host keeps %d descriptors, want 2", n)
	}
	d.want(wasiOK, "fd_close", kept)
}

func TestFiles_Read(t *testing.T) {
	d := newDisk(t)
	fd, other, folder := d.opened("maps/a.txt"), d.opened("maps/a.txt"), d.opened("maps")
	for k, want := range []string{"01234", "56", "789", "", ""} {
		sizes := [][]uint32{{2, 3}, {2}, {0, 2, 40}, {1}, {}}[k]
		if got := d.read(fd, sizes...); got != want {
			t.Errorf("read %d has %q, want %q", k, got, want)
		}
	}
	if got := d.read(other, 3); got != "012" {
		t.Errorf("another descriptor of the file has %q", got)
	}
	d.vectors(4)
	for offset, want := range map[uint64]string{0: "0123", 8: "89", 10: "", 11: "", 1 << 63: ""} {
		d.want(wasiOK, "fd_pread", other, vectorsAt, 1, offset, resultAt)
		if got := string(d.View(bufferAt, d.result())); got != want {
			t.Errorf("from %d it has %q, want %q", offset, got, want)
		}
	}
	if got := d.read(other, 2); got != "34" {
		t.Errorf("fd_pread has moved the descriptor to %q", got)
	}
	long := d.opened("z.bin")
	for k, want := range []int{hostPiece, 7, 0} {
		if got := len(d.read(long, hostPiece-1, 100)); got != want {
			t.Errorf("read %d of a long file has %d bytes, want %d", k, got, want)
		}
	}
	for _, dir := range []uint64{folder, dataFD} {
		d.want(wasiIsDir, "fd_read", dir, vectorsAt, 1, resultAt)
		d.want(wasiIsDir, "fd_pread", dir, vectorsAt, 1, 0, resultAt)
	}
	d.want(wasiBadFD, "fd_read", 60, vectorsAt, 1, resultAt)
	d.want(wasiBadFD, "fd_pread", 60, vectorsAt, 1, 0, resultAt)
	d.want(wasiInval, "fd_pread", other, vectorsAt, maxVectors+1, 0, resultAt)
	d.want(wasiFault, "fd_pread", other, nowhere, 1, 0, resultAt)
	d.want(wasiFault, "fd_pread", other, vectorsAt, 1, 0, nowhere)
	d.vectors(make([]uint32, maxVectors)...)
	d.want(wasiOK, "fd_pread", other, vectorsAt, maxVectors, 0, resultAt)
	binary.LittleEndian.PutUint32(d.View(vectorsAt, 4), nowhere)
	binary.LittleEndian.PutUint32(d.View(vectorsAt+4, 4), 20)
	d.want(wasiFault, "fd_pread", other, vectorsAt, 1, 0, resultAt)
	d.want(wasiFault, "fd_read", other, vectorsAt, 1, resultAt)
	d.want(wasiFault, "fd_read", other, nowhere, 1, resultAt)
	d.want(wasiInval, "fd_read", other, vectorsAt, maxVectors+1, resultAt)
	if got := d.read(other, 2); got != "56" {
		t.Errorf("reads that fail have moved the descriptor to %q", got)
	}
}

// A buffer that is not in the guest's memory is a fault also where nothing is left to be written to it.
func TestFiles_ReadLooksAtEachBuffer(t *testing.T) {
	d := newDisk(t)
	for path, sizes := range map[string][]uint32{"maps/empty.txt": {0, 1}, "maps/a.txt": {10, 1}, "z.bin": {hostPiece, 1}} {
		fd := d.opened(path)
		d.vectors(sizes...)
		d.want(wasiOK, "fd_pread", fd, vectorsAt, 2, 0, resultAt)
		binary.LittleEndian.PutUint32(d.View(vectorsAt+8, 4), nowhere)
		binary.LittleEndian.PutUint32(d.View(vectorsAt+12, 4), 20)
		d.want(wasiFault, "fd_pread", fd, vectorsAt, 2, 0, resultAt)
	}
}

func TestFiles_SeekAndTell(t *testing.T) {
	d := newDisk(t)
	fd, folder := d.opened("maps/a.txt"), d.opened("maps")
	const most = maxOffset
	for _, c := range []struct {
		offset       int64
		whence, code uint64
		at           uint64 // afterwards
	}{
		{4, 0, wasiOK, 4}, {-4, 1, wasiOK, 0}, {-1, 1, wasiInval, 0}, {3, 1, wasiOK, 3}, {2, 1, wasiOK, 5}, {0, 1, wasiOK, 5}, {-10, 2, wasiOK, 0}, {-11, 2, wasiInval, 0}, {-1, 2, wasiOK, 9},
		{1, 2, wasiOK, 11}, {-1, 0, wasiInval, 11}, {0, 3, wasiInval, 11}, {0, 0, wasiOK, 0}, {most, 0, wasiOK, most}, {1, 1, wasiInval, most}, {0, 1, wasiOK, most}, {-1, 1, wasiOK, most - 1}, {1, 1, wasiOK, most},
		{most + 1, 0, wasiInval, most}, {math.MaxInt64, 1, wasiInval, most}, {math.MinInt64, 1, wasiInval, most}, {math.MinInt64, 0, wasiInval, most},
	} {
		d.want(c.code, "fd_seek", fd, uint64(c.offset), c.whence, resultAt)
		if got := binary.LittleEndian.Uint64(d.View(resultAt, 8)); c.code == wasiOK && got != c.at {
			t.Errorf("fd_seek(%d, %d) says %d, want %d", c.offset, c.whence, got, c.at)
		}
		d.want(wasiOK, "fd_tell", fd, resultAt)
		if got := binary.LittleEndian.Uint64(d.View(resultAt, 8)); got != c.at {
			t.Errorf("after fd_seek(%d, %d) it is at %d, want %d", c.offset, c.whence, got, c.at)
		}
	}
	d.want(wasiIsDir, "fd_seek", folder, 0, 0, resultAt)
	d.want(wasiBadFD, "fd_seek", 60, 0, 0, resultAt)
	d.want(wasiBadFD, "fd_tell", 60, resultAt)
	d.want(wasiFault, "fd_tell", fd, nowhere)
	d.want(wasiFault, "fd_seek", fd, 0, 0, nowhere)
}

func TestFiles_Stat(t *testing.T) {
	d := newDisk(t)
	stat := func(kind byte, number, links, size uint64) []byte {
		b := make([]byte, 64)
		binary.LittleEndian.PutUint64(b[8:], number)
		b[16] = kind
		binary.LittleEndian.PutUint64(b[24:], links)
		binary.LittleEndian.PutUint64(b[32:], size)
		return b
	}
	number := func(path string) uint64 {
		place, ok := d.data().Find(path)
		if !ok {
			t.Fatalf("there is no %s", path)
		}
		return uint64(place) + 1
	}
	fd, folder := d.opened("maps/a.txt"), d.opened("maps")
	for fd, want := range map[uint64][]byte{
		0: stat(characterDevice, 0, 0, 0), 2: stat(characterDevice, 0, 0, 0), dataFD: stat(fileDir, 1, 1, 0),
		fd: stat(fileBytes, number("maps/a.txt"), 1, 10), folder: stat(fileDir, number("maps"), 1, 0),
	} {
		copy(d.View(bufferAt, 64), strings.Repeat("?", 64))
		d.want(wasiOK, "fd_filestat_get", fd, bufferAt)
		if got := d.View(bufferAt, 64); !bytes.Equal(got, want) {
			t.Errorf("descriptor %d is %v, want %v", fd, got, want)
		}
		d.want(wasiFault, "fd_filestat_get", fd, nowhere)
		end := uint64(len(d.Mem.Bytes()))
		d.want(wasiOK, "fd_filestat_get", fd, end-statBytes)
		d.want(wasiFault, "fd_filestat_get", fd, end-statBytes+1)
	}
	d.want(wasiBadFD, "fd_filestat_get", 60, bufferAt)
	copy(d.View(pathAt, 5), "a.txt")
	d.want(wasiOK, "path_filestat_get", folder, 0, pathAt, 5, bufferAt)
	if got := d.View(bufferAt, 64); !bytes.Equal(got, stat(fileBytes, number("maps/a.txt"), 1, 10)) {
		t.Errorf("maps/a.txt is %v", got)
	}
	d.want(wasiNoEntry, "path_filestat_get", dataFD, 0, pathAt, 5, bufferAt)
	d.want(wasiInval, "path_readlink", folder, pathAt, 5, bufferAt, 64, resultAt)
	d.want(wasiNoEntry, "path_readlink", dataFD, pathAt, 5, bufferAt, 64, resultAt)
	for fd, want := range map[uint64]byte{fd: fileBytes, folder: fileDir, dataFD: fileDir} {
		copy(d.View(bufferAt, 24), strings.Repeat("?", 24))
		d.want(wasiOK, "fd_fdstat_get", fd, bufferAt)
		rights := binary.LittleEndian.AppendUint64([]byte{want, 0, 0, 0, 0, 0, 0, 0}, rightsRead)
		if got := d.View(bufferAt, 24); !bytes.Equal(got, binary.LittleEndian.AppendUint64(rights, rightsRead)) {
			t.Errorf("descriptor %d has %v", fd, got)
		}
	}
}

// entries reads what fd_readdir has written: whole entries, and how many bytes of another.
func (d *disk) entries() (names []string, cookies []uint64, left int) {
	b := d.View(bufferAt, d.result())
	for len(b) >= direntBytes {
		n := int(binary.LittleEndian.Uint32(b[16:]))
		if len(b) < direntBytes+n {
			break
		}
		place := binary.LittleEndian.Uint64(b[8:]) - 1
		name := string(b[direntBytes:][:n])
		if e := d.data().Entries[place]; filepath.Base(e.Path) != name || b[20] != kindOf(&e) {
			d.t.Errorf("the entry %q of kind %d is number %d", name, b[20], place+1)
		}
		names, cookies, b = append(names, name), append(cookies, binary.LittleEndian.Uint64(b)), b[direntBytes+n:]
	}
	return names, cookies, len(b)
}

func TestFiles_ReadDir(t *testing.T) {
	d := newDisk(t)
	folder, file := d.opened("maps"), d.opened("maps/a.txt")
	for _, c := range []struct {
		fd, room, cookie uint64
		want             string
		left             int
	}{
		{dataFD, 400, 0, "maps z.bin", 0}, {folder, 400, 0, "a.txt empty.txt", 0}, {folder, 400, 1, "empty.txt", 0}, {folder, 400, 2, "", 0}, {folder, 400, 1 << 63, "", 0},
		{folder, direntBytes + 5, 0, "a.txt", 0}, {folder, direntBytes + 8, 0, "a.txt", 3}, {folder, direntBytes + 4, 0, "", direntBytes + 4}, {folder, 0, 0, "", 0},
	} {
		d.want(wasiOK, "fd_readdir", c.fd, bufferAt, c.room, c.cookie, resultAt)
		names, cookies, left := d.entries()
		if got := strings.Join(names, " "); got != c.want || left != c.left {
			t.Errorf("descriptor %d from %d on in %d bytes has %q and %d bytes, want %q and %d", c.fd, c.cookie, c.room, got, left, c.want, c.left)
		}
		for k, cookie := range cookies {
			if cookie != c.cookie+uint64(k)+1 {
				t.Errorf("the cookies from %d on are %v", c.cookie, cookies)
			}
		}
	}
	d.want(wasiNotDir, "fd_readdir", file, bufferAt, 400, 0, resultAt)
	d.want(wasiBadFD, "fd_readdir", 60, bufferAt, 400, 0, resultAt)
	d.want(wasiFault, "fd_readdir", folder, nowhere, 400, 0, resultAt)
	d.want(wasiFault, "fd_readdir", folder, bufferAt, 400, 0, nowhere)
}

func TestFiles_NothingIsWritten(t *testing.T) {
	d := newDisk(t)
	fd := d.opened("maps/a.txt")
	for _, name := range []string{"fd_advise", "fd_fdstat_set_flags", "fd_fdstat_set_rights", "fd_sync", "fd_datasync"} {
		d.want(wasiOK, name, fd)
		d.want(wasiBadFD, name, 60)
	}
	for _, name := range []string{"fd_allocate", "fd_filestat_set_size", "fd_filestat_set_times", "fd_pwrite", "path_create_directory", "path_filestat_set_times", "path_link",
		"path_remove_directory", "path_rename", "path_unlink_file"} {
		d.want(wasiReadOnly, name, dataFD)
		d.want(wasiBadFD, name, 60)
	}
	d.want(wasiBadFD, "fd_write", fd, vectorsAt, 1, resultAt)
}

// Work on files burns fuel: a guest cannot keep the host busy with it for nothing.
func TestFiles_BurnFuel(t *testing.T) {
	d := newDisk(t)
	burned := func(what string, want uint64, do func()) {
		before := d.FuelUsed()
		if do(); d.FuelUsed()-before != want {
			t.Errorf("%s burns %d, want %d", what, d.FuelUsed()-before, want)
		}
	}
	var fd uint64
	burned("a path", 10+serviceWeight, func() { fd = d.opened("maps/a.txt") })
	burned("a read", 7+serviceWeight, func() { d.read(fd, 7) })
	burned("a list", 2*direntBytes+9+serviceWeight, func() { d.want(wasiOK, "fd_readdir", dataFD, bufferAt, 400, 0, resultAt) })
}
