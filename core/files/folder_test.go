package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A folder that was read does not change with the disk, and its copy is the same.
func TestFolder_KeepsWhatWasRead(t *testing.T) {
	dir, twin := t.TempDir(), filepath.Join(t.TempDir(), "twin")
	write(t, dir+"/b/one.txt", "1")
	write(t, dir+"/a.txt", "two")
	f := read(t, dir)
	write(t, dir+"/a.txt", "three")
	place, ok := f.Find("a.txt")
	if !ok || string(f.Entries[place].Content) != "two" {
		t.Errorf("a.txt is %q, want two", f.Entries[place].Content)
	}
	if now := read(t, dir); now.Digest == f.Digest {
		t.Error("the digest is the same after a change")
	}
	if err := f.Write(twin); err != nil {
		t.Fatal(err)
	}
	if copied := read(t, twin); copied.Digest != f.Digest || len(f.Entries[0].Children) != 2 {
		t.Errorf("the copy has the digest %s, want %s; %d children", copied.Digest, f.Digest, len(f.Entries[0].Children))
	}
}

// Names, kinds and contents are all in the digest.
func TestFolder_DigestIsOfEverything(t *testing.T) {
	seen := map[string]string{}
	for name, make := range map[string]func(dir string){
		"empty":      func(string) {},
		"empty file": func(dir string) { write(t, dir+"/x", "") },
		"file":       func(dir string) { write(t, dir+"/x", "y") },
		"other name": func(dir string) { write(t, dir+"/y", "y") },
		"deeper":     func(dir string) { write(t, dir+"/x/y", "y") },
		"folder": func(dir string) {
			if err := os.Mkdir(dir+"/x", 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir := t.TempDir()
		make(dir)
		digest := read(t, dir).Digest
		if other, ok := seen[digest]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[digest] = name
	}
}

// Nothing but files and folders is read, and no more than there is room for.
func TestFolder_IsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir string) error
		want string
	}{
		{"a link out", func(dir string) error { return os.Symlink("/etc/passwd", dir+"/x/link") }, "x/link in it is a symbolic link"},
		{"a link within", func(dir string) error { return os.Symlink("own", dir+"/x/link") }, "x/link in it is a symbolic link"},
		{"a link to a folder", func(dir string) error { return os.Symlink("/etc", dir+"/etc") }, "etc in it is a symbolic link"},
		{"a pipe", func(dir string) error { return syscall.Mkfifo(dir+"/pipe", 0o644) }, "pipe in it is a pipe"},
		{"too many", func(dir string) error {
			for i := range MaxFolderEntries {
				write(t, filepath.Join(dir, "many", strings.Repeat("x", 1+i%200)+strings.Repeat("y", i/200)), "")
			}
			return nil
		}, "more than 4096 files and folders"},
		{"too large", func(dir string) error {
			write(t, dir+"/large", "")
			return os.Truncate(dir+"/large", MaxFolderBytes+1)
		}, "more than 64 MiB"},
		{"not there", func(dir string) error { return os.RemoveAll(dir) }, "no such file"},
	} {
		dir := t.TempDir()
		write(t, dir+"/x/own", "1")
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := ReadFolder(file); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("a file: %v", err)
	}
}
