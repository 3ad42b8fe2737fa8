package ptx

// shadow remembers the last writer and readers of each word of shared memory, to find accesses that nothing orders: two
// threads at one byte, one of them writing, of one warp without bar.warp.sync between them, of two without a barrier.
type shadow struct {
	words []shadowWord
	epoch uint64 // counts barriers and CTAs of all memories that this one is used for, each of which counts its own from 0
}

// shadowWord holds two accesses, each epoch<<32 | syncs<<16 | thread<<6 | bytes<<2 | two flags: the barriers of the CTA and
// of the warp that came before, and which bytes of the word were meant.
type shadowWord struct {
	write uint64
	read  readers
}

// readers is the last read of a word, with what its flags say of those before.
type readers uint64

// Flags of accesses.
const (
	strong     = 1 // of a write: by an atomic or volatile instruction; such ones are no races with each other
	otherLanes = 1 // of a read: other lanes of the warp have read, too
	otherWarps = 2 // of a read: other warps have
)

// next begins a time that a barrier orders after all earlier ones.
func (s *shadow) next() { s.epoch = (s.epoch + 1) & (1<<32 - 1) }

// grow makes the shadow of n bytes of shared memory.
func (s *shadow) grow(n int) {
	if words := (n + 3) / 4; words > len(s.words) {
		s.words = make([]shadowWord, words)
	}
}

// bytesOf returns which bytes of word i the access of n bytes at off means.
func bytesOf(i, off, n uint64) uint64 {
	mask := uint64(15)
	if from := 4 * i; from < off {
		mask &= 15 << (off - from)
	}
	if to := 4*i + 4; to > off+n {
		mask &= 15 >> (to - off - n)
	}
	return mask
}

// key is an access of a lane of a warp, without its bytes and flags.
func (s *shadow) key(w *warp, lane int) uint64 { return access(s.epoch, w, lane) }

// access is that of a lane of a warp in a time that barriers bound, without its bytes and flags.
func access(epoch uint64, w *warp, lane int) uint64 {
	return epoch<<32 | uint64(w.syncs&0xffff)<<16 | uint64(w.number*lanes+lane)<<6
}

// unordered reports whether nothing orders an access before another one, of another thread and to the same bytes.
func unordered(before, key, bytes uint64) bool {
	if before>>32 != key>>32 || before>>2&bytes == 0 || before>>6 == key>>6 {
		return false
	}
	sameThread, sameWarp := (before^key)&(1023<<6) == 0, (before^key)&(1023<<6&^(31<<6)) == 0
	return !sameThread && (!sameWarp || before>>16 == key>>16)
}

// thread returns which thread of the CTA an access is of.
func thread(access uint64) int { return int(access >> 6 & 1023) }

// load notes that a thread reads n bytes at off and returns a thread that has written there and that nothing orders before
// it, or -1.
func (s *shadow) load(key, off, n uint64, flag uint64) int {
	for i := off / 4; i <= (off+n-1)/4; i++ {
		word, bytes := &s.words[i], bytesOf(i, off, n)
		if unordered(word.write, key, bytes) && word.write&flag == 0 {
			return thread(word.write)
		}
		if flag == 0 {
			word.read.note(key, bytes)
		}
	}
	return -1
}

// noteWord is note of all bytes.
func (r *readers) noteWord(key uint64) {
	// Nothing changes where the thread was the last one, or others of its warp have read the word since the warp's last bar.warp.sync.
	if before := uint64(*r); before == key|15<<2 || before>>11 == key>>11 && before&(15<<2|otherLanes) == 15<<2|otherLanes {
		return
	}
	r.note(key, 15)
}

// note remembers a read next to the reads of other threads.
func (r *readers) note(key, bytes uint64) {
	before := uint64(*r)
	mine := key | bytes<<2
	switch {
	case before>>6 == key>>6: // the same thread in the same time, perhaps with another width
		*r = readers(before | bytes<<2)
	case before>>32 != key>>32 || before>>2&15&bytes == 0:
		*r = readers(mine)
	case before>>11 == key>>11: // the warp has read in this time
		*r = readers(before | otherLanes | bytes<<2)
	case (before^key)&(1023<<6&^(31<<6)) == 0: // before its last bar.warp.sync
		*r = readers(mine | before&otherWarps)
	default:
		*r = readers(before | otherWarps | bytes<<2)
	}
}

// store notes that a thread writes n bytes at off and returns a thread that has read or written there and that nothing orders
// before it, or -1. same says that the bytes stay the same, which no reader can tell from no write.
func (s *shadow) store(key, off, n uint64, flag uint64, same bool) int {
	for i := off / 4; i <= (off+n-1)/4; i++ {
		word, bytes := &s.words[i], bytesOf(i, off, n)
		if !same && unordered(word.write, key, bytes) && word.write&flag == 0 {
			return thread(word.write)
		}
		if !same && word.read.meet(key, bytes) {
			return thread(uint64(word.read))
		}
		word.write = key | bytes<<2 | flag
	}
	return -1
}

// meet reports whether another thread has read bytes of the word that nothing orders before key.
func (r readers) meet(key, bytes uint64) bool {
	read := uint64(r)
	if read>>32 != key>>32 || read>>2&bytes == 0 {
		return false
	}
	return unordered(read, key, bytes) || read&otherWarps != 0 || read&otherLanes != 0 && read>>11 == key>>11
}
