package files

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead_GivesTheContentOfARegularFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if got, err := Read(name, 3); err != nil || string(got) != "abc" {
			t.Errorf("Read(%q) = %q, %v", name, got, err)
		}
	}
	if _, err := Read(path, 2); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), path) {
		t.Errorf("Read of 3 bytes with room for 2: %v", err)
	}
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	if got, err := SHA256(path); err != nil || got != sum {
		t.Errorf("SHA256 = %s, %v", got, err)
	}
}

func TestRead_RefusesFilesThatHangOrNeverEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{pipe: "pipe", socket: "not a regular file", dir: "folder", "/dev/zero": "device"} {
		if _, err := Read(path, 10); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%q) = %v, want %q", path, err, want)
		}
		if _, err := SHA256(path); !errors.Is(err, ErrNotRegular) {
			t.Errorf("SHA256(%q) = %v", path, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing: %v", err)
	}
}
