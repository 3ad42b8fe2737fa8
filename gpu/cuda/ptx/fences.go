package ptx

import (
	"fmt"
	"sync/atomic"
)

// scope is how far a fence reaches.
type scope uint8

const (
	device scope = iota // all threads of the grid
	system              // the host, too
)

// fences says how many of a CTA's writes to global memory others can rely on. Writes of a lane are loose until the
// lane executes a fence; a write that was loose at a barrier is covered by any lane's fence after it.
type fences struct {
	loose     [2]bool // writes from before a barrier that no fence has covered since, for each scope
	written   bool    // the CTA has written at all
	published bool    // everything that it has written can be relied on by readers of its atomics
}

// store notes that lanes of a warp have written.
func (f *fences) store(w *warp, m uint32) {
	if w.cta.grid.told.Load() {
		w.raise(m, Unfenced, 0, "the grid writes after it has told the host that it is done")
	}
	w.loose[device] |= m
	w.loose[system] |= m
	w.unmet, f.written = true, true
	if f.published {
		f.published = false
		w.cta.grid.unpublished.Add(1)
	}
}

// fence notes a fence of lanes of a warp.
func (f *fences) fence(w *warp, m uint32, s scope) {
	for reached := device; reached <= s; reached++ {
		w.loose[reached] &^= m
		f.loose[reached] = false
	}
}

// meet notes a barrier of the CTA.
func (f *fences) meet(c *cta) {
	for _, w := range c.warps {
		for s := range w.loose {
			f.loose[s] = f.loose[s] || w.loose[s] != 0
			w.loose[s] = 0
		}
		w.unmet = false
	}
}

// release notes an atomic operation of lanes of a warp in global memory, before others can see it: readers of the value that it
// writes can rely on the writes that fences have covered. It is itself a write that the host sees after a fence only.
func (f *fences) release(w *warp, m uint32) {
	c := w.cta
	clean := !f.loose[device]
	for _, other := range c.warps {
		if other.loose[device] != 0 || other.unmet && other != w {
			clean = false
		} else if !f.loose[device] {
			c.grid.releases[c.number*len(c.warps)+other.number].Add(1)
		}
	}
	w.loose[system] |= m
	c.grid.acquired[c.number].Store(true)
	if clean && !f.published {
		f.published = true
		c.grid.unpublished.Add(-1)
	}
}

// end notes that the CTA has ended.
func (f *fences) end(c *cta) {
	if !f.written && !f.published {
		c.grid.unpublished.Add(-1)
	}
}

// done faults if lanes of a warp tell the host something while it cannot rely on all that the grid writes.
func (f *fences) done(w *warp, m uint32) {
	c := w.cta
	loose, unmet := f.loose[system], false
	for _, other := range c.warps {
		loose = loose || other.loose[system] != 0
		unmet = unmet || other.unmet && other != w
	}
	others := c.grid.unpublished.Load()
	if !f.published {
		others--
	}
	switch {
	case unmet:
		w.raise(m, Unfenced, 0, "the host hears before a barrier with the other warps, which have written")
	case loose:
		w.raise(m, Unfenced, 0, "the host hears of writes or atomics that no __threadfence_system comes after")
	case others > 0:
		w.raise(m, Unfenced, 0, "the host hears it while %d other CTAs have not said with a fence and an atomic that they are done", others)
	}
	c.grid.told.Store(true)
}

// writers remembers the last writer of each word of an allocation: which warp of which launch, and which of its threads
// after which barrier.
type writers struct {
	pages []atomic.Pointer[writerPage]
}

// writerWords is how many words a page is for. Pages are made when somebody writes there.
const writerWords = 1 << 12

// writerPage has each word's writer for other CTAs, launch<<32 | warp<<5 | the warp's releases, of which
// five bits are enough to miss little, and for the writer's own CTA, a write as in shadowWord. 0: no writer.
type writerPage struct {
	marks [writerWords]atomic.Uint64
	keys  [writerWords]uint64
}

func newWriters(size uint64) writers {
	return writers{make([]atomic.Pointer[writerPage], (size/4+writerWords)/writerWords)}
}

const maxReleases = 1<<5 - 1

// mark is what writers remember of a warp's writes now.
func (g *grid) mark(w *warp) uint64 {
	me := uint64(w.cta.number*len(w.cta.warps) + w.number)
	return g.tag<<32 | me<<5 | uint64(min(g.releases[me].Load(), maxReleases))
}

// write notes that a lane writes to the words that [off, off+n) lies in, with the mark of its warp, and names a previous writer to
// one of them whose write the lane cannot rely on; nothing if there is none.
func (ws *writers) write(w *warp, lane int, mark, off, n uint64) (why string) {
	key := access(w.cta.epoch, w, lane)
	for at := off / 4; at <= (off+n-1)/4; at++ {
		slot := &ws.pages[at/writerWords]
		page := slot.Load()
		if page == nil {
			slot.CompareAndSwap(nil, new(writerPage))
			page = slot.Load()
		}
		entry, own, bytes := &page.marks[at%writerWords], &page.keys[at%writerWords], bytesOf(at, off, n)
		if unordered(*own, key, bytes) {
			return hasWritten(*own)
		}
		*own = key | bytes<<2
		if entry.Load() == mark {
			continue
		}
		// Of two that come at once one sees the other.
		if other := w.cta.grid.unordered(w, entry.Swap(mark)); other >= 0 {
			return hasNotPublished(other)
		}
	}
	return ""
}

// read names a writer to one of the words that [off, off+n) lies in whose write a lane cannot rely on; nothing if there is
// none. own reports whether this launch has written there at all.
func (ws *writers) read(w *warp, lane int, off, n uint64) (why string, own bool) {
	key := access(w.cta.epoch, w, lane)
	for at := off / 4; at <= (off+n-1)/4; at++ {
		page := ws.pages[at/writerWords].Load()
		if page == nil {
			continue
		}
		before := page.marks[at%writerWords].Load()
		if before>>32 != w.cta.grid.tag {
			continue
		}
		own = true
		if other := w.cta.grid.unordered(w, before); other >= 0 {
			return hasNotPublished(other), true
		}
		if before := page.keys[at%writerWords]; unordered(before, key, bytesOf(at, off, n)) {
			return hasWritten(before), true
		}
	}
	return "", own
}

func hasNotPublished(cta int) string {
	return fmt.Sprintf("CTA %d has written there and not published it, or this CTA has not looked", cta)
}

func hasWritten(key uint64) string {
	return fmt.Sprintf("thread %d of the CTA has written there, and no barrier is between", thread(key))
}

// unordered returns the CTA of an entry's writer if that is another one of this launch that has not published the write, or if
// the warp's own has never looked; else -1.
func (g *grid) unordered(w *warp, entry uint64) int {
	writer := int(entry >> 5 & (1<<27 - 1))
	if entry>>32 != g.tag || writer >= len(g.releases) {
		return -1
	}
	number := writer / len(w.cta.warps)
	if number == w.cta.number {
		return -1
	}
	if g.releases[writer].Load() > uint32(entry&maxReleases) && g.acquired[w.cta.number].Load() {
		return -1
	}
	return number
}

// reads remembers which words of global memory a CTA has read since its last barrier: each in the place that its address gives
// it, which takes the place of another one.
type reads [readWords]struct {
	word uint64 // address / 4
	readers
}

// readWords is how many words a CTA remembers, a power of two: twice what two tiles of a product have.
const readWords = 1 << 12

// note remembers that a lane of the CTA reads n bytes at an address.
func (c *cta) note(w *warp, lane int, address, n uint64) {
	key := c.shadow.key(w, lane)
	for word := address / 4; word <= (address+n-1)/4; word++ {
		c.of(word).note(key, bytesOf(word, address, n))
	}
}

// of returns who has read a word.
func (c *cta) of(word uint64) *readers {
	r := &c.reads[word%readWords]
	if r.word != word {
		r.word, r.readers = word, 0
	}
	return &r.readers
}

// readBefore names another thread of the CTA that has read a word that a lane is about to write; nothing if none has, as far as the CTA
// remembers.
func (c *cta) readBefore(w *warp, lane int, address, n uint64) string {
	key := c.shadow.key(w, lane)
	for word := address / 4; word <= (address+n-1)/4; word++ {
		if r := &c.reads[word%readWords]; r.word == word && r.meet(key, bytesOf(word, address, n)) {
			return fmt.Sprintf("thread %d of the CTA has read it, and no barrier is between", thread(uint64(r.readers)))
		}
	}
	return ""
}
