package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Limits of a device, an H100's.
const (
	MaxBlock  = 1024     // threads of a CTA
	MaxShared = 48 << 10 // bytes of shared memory of a CTA that has not opted in to more, which is not modelled
	maxDepthZ = 64
	// maxCTAs is the interpreter's limit; a device runs more.
	maxCTAs = 1 << 22
	// defaultSteps is some seconds of a warp's time.
	defaultSteps = 1 << 28
)

// Launch says how an entry runs.
type Launch struct {
	Grid  [3]int // CTAs: x, y, z
	Block [3]int // threads of a CTA
	// Shared is how many bytes of dynamic shared memory a CTA has.
	Shared int
	// Args are the values of the parameters, laid out as Entry.Params says.
	Args []byte
	// Seed orders CTAs and warps.
	Seed uint64
	// Steps is how many instructions a warp may execute, 0: 1<<28.
	Steps int
	// Workers is how many CTAs run at a time, 0: one on each processor. With one the order of everything follows from Seed.
	Workers int
}

// grid is a launch under way.
type grid struct {
	launch  *Launch
	entry   *Entry
	threads int // of a CTA
	steps   int
	table   []*allocation
	tag     uint64 // of this launch among its memory's launches, 32 bits, not 0
	epochs  *atomic.Uint64
	stopped atomic.Bool

	// What CTAs may rely on of each other's writes; see fences.
	releases    []atomic.Uint32 // of each warp: how often its writes were published
	acquired    []atomic.Bool   // of each CTA: whether it has looked at an atomic
	unpublished atomic.Int64    // CTAs that have not published all that they wrote
	told        atomic.Bool     // whether the host was told that the grid is done
}

// Launch runs the entry over a grid and returns when all threads have left, or the *Fault of one. What CTAs had written until
// then stays. It may be called from several goroutines.
func (e *Entry) Launch(m *Memory, l *Launch) error {
	if err := e.Check(l); err != nil {
		return err
	}
	count := l.Grid[0] * l.Grid[1] * l.Grid[2]
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	g := &grid{launch: l, entry: e, threads: threads, steps: l.Steps, tag: m.launches.Add(1)%(1<<32-1) + 1, epochs: &m.epochs}
	if g.steps == 0 {
		g.steps = defaultSteps
	}
	g.table = append(append(g.table, *m.table.Load()...), &e.module.globals)
	g.releases = make([]atomic.Uint32, count*((threads+lanes-1)/lanes))
	g.acquired = make([]atomic.Bool, count)
	g.unpublished.Store(int64(count))
	if f := g.run(count); f != nil {
		return f
	}
	return nil
}

// Check returns the *Fault of a launch that is wrong before anything runs, or nil.
func (e *Entry) Check(l *Launch) error {
	if f := e.check(l); f != nil {
		f.Entry = e.Name
		return f
	}
	return nil
}

// check is Check without the entry's name.
func (e *Entry) check(l *Launch) *Fault {
	bad := func(kind Kind, format string, args ...any) *Fault {
		return &Fault{Kind: kind, Detail: fmt.Sprintf(format, args...)}
	}
	for i := range 3 {
		if l.Grid[i] < 1 || l.Grid[i] > math.MaxInt32 || i > 0 && l.Grid[i] > math.MaxUint16 {
			return bad(BadLaunch, "a grid of %v CTAs", l.Grid)
		}
		if l.Block[i] < 1 {
			return bad(BadLaunch, "a block of %v threads", l.Block)
		}
	}
	if l.Grid[0] > maxCTAs || l.Grid[0]*l.Grid[1] > maxCTAs || l.Grid[0]*l.Grid[1]*l.Grid[2] > maxCTAs {
		return bad(BadLaunch, "a grid of %v CTAs: the interpreter runs at most %d", l.Grid, maxCTAs)
	}
	most := MaxBlock
	if e.MaxThreads > 0 {
		most = min(most, e.MaxThreads)
	}
	if l.Block[0] > most || l.Block[1] > most || l.Block[2] > maxDepthZ || l.Block[0]*l.Block[1]*l.Block[2] > most {
		return bad(TooManyThreads, "a block of %v threads, at most %d", l.Block, most)
	}
	if e.required[0] > 0 && l.Block != e.required {
		return bad(BadLaunch, "a block of %v threads, the entry requires %v", l.Block, e.required)
	}
	if len(l.Args) != e.ParamBytes {
		return bad(BadLaunch, "%d bytes of arguments, the parameters have %d", len(l.Args), e.ParamBytes)
	}
	if l.Shared < 0 || l.Shared > MaxShared-e.Shared {
		return bad(SharedLimit, "%d bytes of static and %d of dynamic shared memory, at most %d", e.Shared, l.Shared, MaxShared)
	}
	if l.Steps < 0 || l.Workers < 0 {
		return bad(BadLaunch, "steps %d, workers %d", l.Steps, l.Workers)
	}
	return nil
}

// run has all CTAs run by as many workers as there are processors. The fault of the first CTA that faults ends it.
func (g *grid) run(count int) *Fault {
	workers := g.launch.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	order := rand.New(rand.NewPCG(g.launch.Seed, 0)).Perm(count)
	var next atomic.Int64
	var first atomic.Pointer[Fault]
	work := func() {
		c := g.entry.resting.take(g)
		defer g.entry.resting.put(c)
		for !g.stopped.Load() {
			i := int(next.Add(1)) - 1
			if i >= count {
				return
			}
			if f := c.run(order[i]); f != nil {
				first.CompareAndSwap(nil, f)
				g.stopped.Store(true)
			}
		}
	}
	var all sync.WaitGroup
	for range min(workers, count) - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
	return first.Load()
}

// pool keeps the registers of CTAs for further launches of an entry.
type pool struct {
	mu   sync.Mutex
	free []*cta
}

// take returns a CTA for a grid.
func (p *pool) take(g *grid) *cta {
	p.mu.Lock()
	var c *cta
	if n := len(p.free); n > 0 {
		c, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	if c == nil {
		source := rand.NewPCG(0, 0)
		c = &cta{entry: g.entry, program: &g.entry.program, source: source, order: rand.New(source)}
	}
	c.grid = g
	c.shape((g.threads+lanes-1)/lanes, g.entry.Shared+g.launch.Shared)
	return c
}

// put gives a CTA back.
func (p *pool) put(c *cta) {
	c.grid = nil
	for _, w := range c.spare {
		w.last = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < runtime.GOMAXPROCS(0) {
		p.free = append(p.free, c)
	}
}

// shape gives the CTA a number of warps and bytes of shared memory.
func (c *cta) shape(warps, bytes int) {
	for len(c.spare) < warps {
		c.spare = append(c.spare, newWarp(c, len(c.spare)))
	}
	c.warps = c.spare[:warps]
	if cap(c.memory) < bytes {
		c.memory = aligned(bytes)
	}
	c.memory = c.memory[:cap(c.memory)]
	c.shared = c.memory[:bytes:bytes]
	c.shadow.grow(bytes)
}

// Args lays out values as the entry's parameters: addresses as uint64; int32, uint32, int64, float32, float64; and bytes for
// structures. A value of another size than its parameter is an error.
func (e *Entry) Args(values ...any) ([]byte, error) {
	if len(values) != len(e.Params) {
		return nil, fmt.Errorf("ptx: %s has %d parameters, not %d", e.Name, len(e.Params), len(values))
	}
	args := make([]byte, e.ParamBytes)
	for i, v := range values {
		p := e.Params[i]
		if b, ok := v.([]byte); ok && len(b) == p.Size {
			copy(args[p.Offset:], b)
			continue
		}
		if binary.Size(v) != p.Size {
			return nil, fmt.Errorf("ptx: %s: parameter %s has %d bytes, the value is a %T of %d", e.Name, p.Name, p.Size, v, binary.Size(v))
		}
		if _, err := binary.Encode(args[p.Offset:], binary.LittleEndian, v); err != nil {
			return nil, fmt.Errorf("ptx: %s: parameter %s: %w", e.Name, p.Name, err)
		}
	}
	return args, nil
}
