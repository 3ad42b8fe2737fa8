package files

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// folderOf makes a folder with files in it, and reads it.
func folderOf(t testing.TB, content map[string]string) *Folder {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		to := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestArchive_GivesTheSameFolder(t *testing.T) {
	f := folderOf(t, map[string]string{"a": "", "levels/1/map.txt": "#..#", "levels/2/ä b.txt": strings.Repeat("x", 70_000), "z": "z"})
	got, err := FromArchive(f.Archive())
	if err != nil || got.Digest != f.Digest || len(got.Entries) != len(f.Entries) {
		t.Fatalf("%v, %v, want %v", got, err, f)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if err := got.Write(to); err != nil {
		t.Fatal(err)
	}
	if again, err := ReadFolder(to); err != nil || again.Digest != f.Digest || !reflect.DeepEqual(again.at, f.at) {
		t.Errorf("the copy: %v, %v", again, err)
	}
}

// entry is one of an archive that nobody has made.
func entry(name, content string, kind byte) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(name)))
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(content))), kind)
	return string(b) + name + content
}

func TestFromArchive_RefusesWhatLeadsOutOfIt(t *testing.T) {
	root := entry(".", "", 1)
	if f, err := FromArchive([]byte(root + entry("a", "b", 0))); err != nil || len(f.Entries) != 2 {
		t.Fatalf("a good one: %v, %v", f, err)
	}
	for what, text := range map[string]string{
		"nothing": "", "no folder": entry("a", "b", 0), "cut": root + entry("a", "bcd", 0)[:20], "a size beyond the end": root + entry("a", "b", 0)[:17] + "a",
		"up": root + entry("../a", "b", 0), "absolute": root + entry("/a", "b", 0), "twice": root + entry("a", "b", 0) + entry("a", "b", 0),
		"in a file": root + entry("a", "b", 0) + entry("a/b", "c", 0), "in no folder": root + entry("a/b", "c", 0), "another kind": root + entry("a", "", 2),
		"a folder with content": root + entry("a", "b", 1), "the folder again": root + root, "no name": root + entry("", "b", 0), "a zero": root + entry("a\x00", "b", 0),
		"too many": root + strings.Repeat(entry("a", "", 0), MaxFolderEntries+1),
	} {
		if f, err := FromArchive([]byte(text)); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: %v, %v", what, f, err)
		}
	}
}

// What FromArchive takes has the bytes that Archive makes of it, and every path lies below the folder.
func FuzzFromArchive(f *testing.F) {
	f.Add([]byte(entry(".", "", 1) + entry("a", "", 1) + entry("a/b", "c", 0)))
	f.Add([]byte(entry(".", "", 1) + entry("../a", "b", 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		folder, err := FromArchive(b)
		if err != nil {
			return
		}
		if string(folder.Archive()) != string(b) {
			t.Errorf("%q becomes %q", b, folder.Archive())
		}
		for i := range folder.Entries {
			if p := folder.Entries[i].Path; !filepath.IsLocal(filepath.FromSlash(p)) {
				t.Errorf("%q leads out", p)
			}
		}
	})
}
