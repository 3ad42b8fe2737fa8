package wasm

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestChangedSince_FindsWhatComparingAllDoes writes, reads, maps and grows at random.
func TestChangedSince_FindsWhatComparingAllDoes(t *testing.T) {
	const pages = 2 * copyLimit / hostPage
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	content := make([]byte, pages*hostPage)
	for range pages {
		content[r.IntN(len(content))] = 1
	}
	file, err := newImageFile(content)
	must(t, err)
	defer file.close()
	img := &image{state: state{size: uint64(len(content))}, content: file.content, file: file}
	for range 20 {
		mem, err := newLinear(img.size, 2*img.size)
		must(t, err)
		must(t, img.putInto(mem))
		i, window := &instance{mem: mem}, uint64(r.IntN(pages))
		for range 30 {
			at := uint64(r.IntN(int(mem.size / hostPage)))
			switch here := mem.bytes()[at*hostPage:][:hostPage]; r.IntN(6) {
			case 0:
				mem.Reallocate(min(mem.size+wasmPage, mem.limit))
			case 1:
				must(t, mem.mapZero(at*hostPage, hostPage))
			case 2:
				must(t, mem.mapPrivateView(file.fd, 0, window*hostPage, hostPage))
			case 3:
				_ = bytes.IndexByte(here, 2)
			default:
				if at != window {
					here[r.IntN(hostPage)] = byte(r.IntN(2))
				}
			}
			inWindow := func(offset uint64) bool { return offset == window*hostPage }
			got, want := i.changedSince(img, inWindow), changedPages(mem.bytes(), img.content, inWindow)
			if len(got) != len(want) {
				t.Fatalf("%d pages, want %d", len(got), len(want))
			}
			for k := range got {
				if got[k].number != want[k].number || string(got[k].data) != string(want[k].data) {
					t.Fatalf("page %d, want %d, or other content", got[k].number, want[k].number)
				}
			}
		}
		mem.release()
	}
}
