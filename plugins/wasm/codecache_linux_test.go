package wasm

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// cacheLab is a cache with the entry of one guest, and what that guest writes.
type cacheLab struct {
	t      testing.TB
	dir    string
	source []byte
	want   []byte
	entry  string // path
	good   []byte // the entry
}

func newCacheLab(t *testing.T, source []byte) *cacheLab {
	l := &cacheLab{t: t, dir: t.TempDir(), source: source}
	r, log := apart(t, l.dir, "")
	l.want = played(t, r, source)
	if log.Len() > 0 {
		t.Fatal(log.String())
	}
	l.entry = l.entries()[0]
	l.good, _ = os.ReadFile(l.entry)
	return l
}

func (l *cacheLab) folder() string { return filepath.Join(l.dir, codecache.Folder) }

// entries returns the paths of all entries.
func (l *cacheLab) entries() []string {
	all, _ := filepath.Glob(filepath.Join(l.folder(), strings.Repeat("[0-9a-f]", 64)))
	if len(all) == 0 {
		l.t.Fatal("no entry was kept")
	}
	return all
}

// loads loads the guest once more and returns the log. The guest must do the same as ever.
func (l *cacheLab) loads() string {
	l.t.Helper()
	var log bytes.Buffer
	r, err := New(Options{CacheDir: l.dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Load(l.t.Context(), "guest.wasm", l.source, env.Source{})
	if err != nil {
		l.t.Fatal(err)
	}
	defer p.Close()
	return log.String()
}

// refuses loads the guest over a damaged entry, which must be logged once, mended, and not logged again.
func (l *cacheLab) refuses(what string) {
	l.t.Helper()
	said := l.loads()
	if strings.Count(said, "compiled module not used, it is compiled again") != 1 || strings.Count(said, "level=") != 1 {
		l.t.Errorf("%s: said %q", what, said)
	}
	if said := l.loads(); said != "" {
		l.t.Errorf("%s: said the second time: %s", what, said)
	}
}

func TestCache_NothingDamagedIsRun(t *testing.T) {
	l := newCacheLab(t, counting(10))
	places := make([]int, 0, 200)
	for at := 0; at < len(l.good); at += 1 + max(0, at-codecache.HeadBytes)/8 {
		places = append(places, at)
	}
	if os.Getenv("RLHOST_HOSTILE") != "" {
		places = places[:0]
		for at := range l.good {
			places = append(places, at)
		}
	}
	for _, at := range places {
		bad := bytes.Clone(l.good)
		bad[at] ^= 1 << (at % 8)
		must(t, os.WriteFile(l.entry, bad, 0o600))
		said := l.loads()
		if strings.Count(said, "compiled module not used") != 1 {
			t.Errorf("byte %d flipped: said %q", at, said)
		}
	}
	for _, size := range []int{0, 1, codecache.HeadBytes - 1, codecache.HeadBytes, len(l.good) / 2, len(l.good) - 1} {
		must(t, os.Truncate(l.entry, int64(size)))
		l.refuses(fmt.Sprintf("cut to %d bytes", size))
	}
	longer, err := os.OpenFile(l.entry, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	if _, err := longer.WriteString("more"); err != nil {
		t.Fatal(err)
	}
	longer.Close()
	l.refuses("longer")
	t.Logf("%d of %d bytes flipped", len(places), len(l.good))
}

// Another module's code, an entry under another key and another user's file are not run.
func TestCache_NothingPlantedIsRun(t *testing.T) {
	l := newCacheLab(t, counting(11))
	other := newCacheLab(t, counting(12))
	elsewhere, short := filepath.Join(t.TempDir(), "entry"), filepath.Join(l.dir, "s")
	put := func(path string, content []byte, mode os.FileMode) error {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
	for _, c := range []struct {
		what  string
		plant func() error
	}{
		{"the entry of another module under another key", func() error { return put(l.entry, other.good, 0o600) }},
		{"the entry of another module", func() error {
			l.source = other.source
			l.loads()
			l.source = counting(11)
			for _, e := range l.entries() {
				if e != l.entry {
					b, err := os.ReadFile(e)
					if err != nil {
						return err
					}
					return put(l.entry, b, 0o600)
				}
			}
			return fmt.Errorf("no other entry")
		}},
		{"a file that others may write", func() error { return put(l.entry, l.good, 0o602) }},
		{"a file that others may read", func() error { return put(l.entry, l.good, 0o640) }},
		{"a link to a good entry", func() error {
			if err := put(elsewhere, l.good, 0o600); err != nil {
				return err
			}
			return joined(os.Remove(l.entry), os.Symlink(elsewhere, l.entry))
		}},
		{"a link to itself", func() error { return joined(os.Remove(l.entry), os.Symlink(l.entry, l.entry)) }},
		{"a FIFO", func() error { return joined(os.Remove(l.entry), unix.Mkfifo(l.entry, 0o600)) }},
		{"a socket", func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return joined(os.Remove(l.entry), unix.Bind(fd, &unix.SockaddrUnix{Name: short}), os.Rename(short, l.entry), os.Chmod(l.entry, 0o600))
		}},
		{"another key", func() error { return put(filepath.Join(l.folder(), codecache.KeyFile), make([]byte, 32), 0o600) }},
		{"a key that others may read", func() error { return os.Chmod(filepath.Join(l.folder(), codecache.KeyFile), 0o644) }},
		{"a FIFO for a key", func() error {
			key := filepath.Join(l.folder(), codecache.KeyFile)
			return joined(os.Remove(key), unix.Mkfifo(key, 0o600))
		}},
		{"a file of another user", func() error {
			return joined(put(l.entry, l.good, 0o600), unix.Chown(l.entry, 12345, 12345))
		}},
		{"a key of another user", func() error { return unix.Chown(filepath.Join(l.folder(), codecache.KeyFile), 12345, 12345) }},
	} {
		if err := c.plant(); err != nil {
			if os.Geteuid() != 0 && strings.HasSuffix(c.what, "another user") {
				t.Logf("%s: not root", c.what)
				continue
			}
			t.Fatalf("%s: %v", c.what, err)
		}
		l.refuses(c.what)
		l.good, _ = os.ReadFile(l.entry)
	}
	if got := played(t, newRuntime(t), l.source); !bytes.Equal(got, l.want) {
		t.Error("the guest writes other bytes than at first")
	}
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A folder that cannot be put right is logged, once for each runtime, and nothing in it is used.
func TestCache_FolderOfOthersIsNotUsed(t *testing.T) {
	for _, c := range []struct {
		what  string
		plant func(l *cacheLab) error
		say   string
	}{
		{"open to a group", func(l *cacheLab) error { return os.Chmod(l.folder(), 0o770) }, "is open to other users (mode 0770)"},
		{"open to all", func(l *cacheLab) error { return os.Chmod(l.folder(), 0o701) }, "is open to other users (mode 0701)"},
		{"of another user", func(l *cacheLab) error { return unix.Chown(l.folder(), 12345, 12345) }, "belongs to user 12345"},
		{"a link", func(l *cacheLab) error {
			moved := filepath.Join(l.dir, "moved")
			return joined(os.Rename(l.folder(), moved), os.Symlink(moved, l.folder()))
		}, "not a directory"},
		{"a FIFO", func(l *cacheLab) error {
			return joined(os.RemoveAll(l.folder()), unix.Mkfifo(l.folder(), 0o600))
		}, "not a directory"},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newCacheLab(t, counting(13))
			must(t, os.WriteFile(l.entry, []byte("nonsense"), 0o600))
			if err := c.plant(l); err != nil {
				if os.Geteuid() != 0 && c.what == "of another user" {
					t.Skip("only root can give a folder away")
				}
				t.Fatal(err)
			}
			r, log := apart(t, l.dir, "")
			for range 2 {
				if got := played(t, r, l.source); !bytes.Equal(got, l.want) {
					t.Error("the guest writes other bytes than at first")
				}
			}
			if said := log.String(); strings.Count(said, "level=") != 1 || !strings.Contains(said, c.say) ||
				!strings.Contains(said, "compiled modules are not kept") {
				t.Errorf("said %q, want %q once", said, c.say)
			}
		})
	}
}

// A module can be loaded by many at once who all find nothing, or the same.
func TestCache_IsSharedByManyRuntimes(t *testing.T) {
	dir, source := t.TempDir(), counting(14)
	want := played(t, newRuntime(t), source)
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r, log := apart(t, dir, "")
			if got := played(t, r, source); !bytes.Equal(got, want) || log.Len() > 0 {
				t.Errorf("other bytes, or said %s", log.String())
			}
		})
	}
}
