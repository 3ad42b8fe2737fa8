package arena

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// Config describes an arena.
type Config struct {
	ID         uint8  // part of every handle; Set.Add chooses it
	Name       string // for people, and for /proc/*/maps
	Blocks     int    // 1 to 524288
	BlockBytes int    // size of each; blocks start on page boundaries, so small ones waste memory
	Schema     Schema // what the blocks contain, for callers; the arena does not look at it; nil says nothing

	// ReadOnly: other processes can map the blocks for reading only, which the system enforces. No window can be
	// mapped on them, not even here.
	ReadOnly bool

	// Segment makes the memory, which then belongs to the arena: first the words, then the blocks. nil means
	// shm.Create, or shm.CreateReadOnly for the blocks of a ReadOnly arena.
	Segment func(name string, bytes int) (*shm.Segment, error)
}

// Footprint returns how many bytes of shared memory an arena of that many blocks of that size takes: each block has
// whole pages, and a word that says which processes hold it.
func Footprint(blocks, blockBytes int) (int64, error) {
	l, err := planLayout(blocks, blockBytes)
	if err != nil {
		return 0, err
	}
	return int64(l.words) + int64(l.data), nil
}

// Arena is one segment of equal blocks and another with the words that say which processes hold each block.
type Arena struct {
	blocks
	words *shm.Segment
	data  *shm.Segment
	set   *Set // nil: in none

	patience time.Duration // of Sweep
	closing  atomic.Bool   // set by Close, never cleared: no more loans
	track    tracker       // stacks of open claims, in invariants builds

	mu     sync.Mutex // sweeping and closing, one at a time
	closed bool       // guarded by mu: Close has succeeded
}

// blocks is one process's view of an arena's blocks: their memory, their words, and its private record of each.
type blocks struct {
	config Config
	layout layout
	mem    []byte // of Arena.data
	view   view   // of Arena.words
	first  uint64 // generation that all blocks began with
	holder int
	me     word    // this process's bit in the holder bitmap
	local  []local // this process's private record of each block
}

// local is a cache line of this process's own memory per block. It ends with the process, and no other process
// can write it.
type local struct {
	claims   atomic.Uint64                      // claims of this process; see type claims
	onFree   atomic.Pointer[func(block uint32)] // receives the credit when the block becomes free
	credited atomic.Uint64                      // generation of the last free that was credited from here
	skipped  atomic.Uint64                      // generations that Sweep passed over
	_        [32]byte
}

// New makes an arena with all blocks free. The contents of a block are undefined until its first writer has
// written them. The arena must be closed.
func New(c Config) (*Arena, error) { return newArena(c, 1) }

// newArena starts all blocks at the given generation, so that an arena that reuses an ID rejects the handles of
// the previous one.
func newArena(c Config, generation uint64) (*Arena, error) {
	l, err := planLayout(c.Blocks, c.BlockBytes)
	if err != nil {
		return nil, fmt.Errorf("arena %q: %w", c.Name, err)
	}
	words, data, err := c.segments(l)
	if err != nil {
		return nil, fmt.Errorf("arena %q: %w", c.Name, err)
	}
	viewOf(words.Bytes(), l).format(l, c.ID, generation)
	a := over(words, data, c, l, hostabi.ArenaHost)
	if invariants {
		poison(a.mem)
	}
	return a, nil
}

// segments makes the memory of an arena.
func (c Config) segments(l layout) (words, data *shm.Segment, err error) {
	createWords, createData := c.Segment, c.Segment
	if c.Segment == nil {
		createWords, createData = shm.Create, shm.Create
		if c.ReadOnly {
			createData = shm.CreateReadOnly
		}
	}
	if words, err = segment(createWords, c.Name+".words", l.words); err != nil {
		return nil, nil, err
	}
	if data, err = segment(createData, c.Name, l.data); err != nil {
		return nil, nil, errors.Join(err, words.Close())
	}
	return words, data, nil
}

func segment(create func(string, int) (*shm.Segment, error), name string, bytes int) (*shm.Segment, error) {
	s, err := create(name, bytes)
	if err != nil {
		return nil, err
	}
	if s.Size() < bytes || !aligned(s.Bytes(), shm.PageSize()) {
		_ = s.Close() // the error that matters is ours
		return nil, fmt.Errorf("segment of %d bytes is not %d bytes from a page on", s.Size(), bytes)
	}
	return s, nil
}

// over returns a process's view of an arena in two segments. Each process has its own holder bit.
func over(words, data *shm.Segment, c Config, l layout, holder int) *Arena {
	v := viewOf(words.Bytes(), l)
	a := &Arena{
		blocks: blocks{
			config: c, layout: l, mem: data.Bytes()[:l.data], view: v, first: v.header.first,
			holder: holder, me: 1 << holder, local: make([]local, l.blocks),
		},
		words: words, data: data, patience: mendPatience,
	}
	for b := range a.local { // the use before the first one has ended
		a.local[b].claims.Store(uint64(makeClaims(previousGeneration(a.first), 0)))
	}
	return a
}

// host reports whether this is the process that made the arena. It is the authority where words contradict
// each other.
func (b *blocks) host() bool { return b.holder == hostabi.ArenaHost }

// writable reports whether this process can write blocks.
func (b *blocks) writable() bool { return !b.config.ReadOnly || b.host() }

// ID returns the number of the arena in its handles.
func (a *Arena) ID() uint8 { return a.config.ID }

// Name returns the configured name.
func (a *Arena) Name() string { return a.config.Name }

// Blocks returns how many blocks there are.
func (a *Arena) Blocks() int { return a.layout.blocks }

// BlockBytes returns the size of each block.
func (a *Arena) BlockBytes() int { return a.layout.blockBytes }

// Schema returns the configured description of a block's contents.
func (a *Arena) Schema() Schema { return a.config.Schema }

// MemoryOf returns the memory of all blocks, in whole pages, to be registered with a device. It stays mapped as long as the
// arena is reachable. The contents of a block belong to the holders of its claims.
func MemoryOf(a *Arena) []byte { return a.mem }

// FD returns the file of the blocks, for mapping windows, or -1 if there is none. It belongs to the arena.
func (a *Arena) FD() int { return a.data.FD() }

// BlockOffset returns where the block starts in that file, in bytes, a multiple of the page size; or -1 if there
// is no such block. Blocks lie at equal distances, and the pages of one hold nothing of another.
func (a *Arena) BlockOffset(block uint32) int64 {
	if int64(block) >= int64(a.layout.blocks) {
		return -1
	}
	return int64(block) * int64(a.layout.stride)
}

func (b *blocks) word(block uint32) word { return word(b.view.blocks[block].word.Load()) }

func (b *blocks) swap(block uint32, from, to word) bool {
	return b.view.blocks[block].word.CompareAndSwap(uint64(from), uint64(to))
}

func (b *blocks) claims(block uint32) claims { return claims(b.local[block].claims.Load()) }

// unusedGeneration returns a generation later than every block's. For a damaged word it takes the generation that this process knows.
func (b *blocks) unusedGeneration() uint64 {
	used := uint64(0)
	for block := range uint32(b.layout.blocks) {
		g, floor := b.word(block).generation(), b.claims(block).generation()
		if !follows(g, floor) {
			g = generationAfter(floor, generationSkip)
		}
		if previous := previousGeneration(b.first); g != previous {
			used = max(used, generationsBetween(b.first, g))
		}
	}
	return generationAfter(b.first, used+1)
}

// bytes returns a block's memory, without room for append to reach the next one.
func (b *blocks) bytes(block uint32) []byte {
	at := int(block) * b.layout.stride
	return b.mem[at : at+b.layout.blockBytes : at+b.layout.blockBytes]
}

// check reports whether h may name a block of this arena, whatever its generation.
func (b *blocks) check(h hostabi.Handle) error {
	if h.Arena() != b.config.ID {
		return ErrForeign
	}
	if int(h.Block()) >= b.layout.blocks {
		return ErrRange
	}
	return nil
}

// keep returns the memory to the system once the Arena is unreachable: until then a use of it is an error or
// reads zeros, never a fault.
func (a *Arena) keep() {
	runtime.AddCleanup(a, func(s [2]*shm.Segment) {
		for _, s := range s {
			_ = s.Close() // there is no one to return the error to
		}
	}, [2]*shm.Segment{a.words, a.data})
}
