package linear

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestChanged_FindsWhatComparingAllDoes writes, reads, maps and grows at random.
func TestChanged_FindsWhatComparingAllDoes(t *testing.T) {
	const pages = 2 * copyLimit / HostPage
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	content := make([]byte, pages*HostPage)
	for range pages {
		content[r.IntN(len(content))] = 1
	}
	file, err := newImageFile(content)
	must(t, err)
	defer file.close()
	img := &Image{content: file.content, file: file}
	for range 20 {
		mem, err := New(img.size(), 2*img.size())
		must(t, err)
		must(t, img.putInto(mem))
		window := uint64(r.IntN(pages))
		for range 30 {
			at := uint64(r.IntN(int(mem.Size / HostPage)))
			switch here := mem.Bytes()[at*HostPage:][:HostPage]; r.IntN(6) {
			case 0:
				mem.Reallocate(min(mem.Size+WasmPage, mem.Limit))
			case 1:
				must(t, mem.MapZero(at*HostPage, HostPage))
			case 2:
				must(t, mem.MapPrivate(file.fd, 0, window*HostPage, HostPage))
			case 3:
				_ = bytes.IndexByte(here, 2)
			default:
				if at != window {
					here[r.IntN(HostPage)] = byte(r.IntN(2))
				}
			}
			inWindow := func(offset uint64) bool { return offset == window*HostPage }
			got, want := mem.Changed(img, inWindow), changedPages(mem.Bytes(), img.content, inWindow)
			if len(got) != len(want) {
				t.Fatalf("%d pages, want %d", len(got), len(want))
			}
			for k := range got {
				if got[k].Number != want[k].Number || string(got[k].Data) != string(want[k].Data) {
					t.Fatalf("page %d, want %d, or other content", got[k].Number, want[k].Number)
				}
			}
		}
		mem.Release()
	}
}

// With little address space left there is room for the limit alone.
func TestNew_MakesDoWithLittleAddressSpace(t *testing.T) {
	statm, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	pages, err := strconv.ParseUint(strings.Fields(string(statm))[0], 10, 64)
	must(t, err)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_AS, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: pages*uint64(os.Getpagesize()) + 1<<30, Max: old.Max}))
	l, err := New(WasmPage, 1<<20)
	must(t, errors.Join(unix.Setrlimit(unix.RLIMIT_AS, &old), err))
	defer l.Release()
	l.Donated = 1 << 20
	if l.Reallocate(1<<20) == nil || l.Reallocate(2<<20) != nil {
		t.Errorf("of 1 MiB and a window of as much %d bytes are there", l.Size)
	}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
