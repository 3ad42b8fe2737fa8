package guest

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// Sampler finds where guests spend their time: it looks at the stack where a guest has burned a slice of fuel, which is shorter than
// otherwise, and gives that stack the time since the look before. The code of guests is the same with it and without. It is for one
// instance at a time, and for one goroutine.
type Sampler struct {
	watched  bool
	from     time.Time     // of the time that the next sample gets
	pending  time.Duration // that was watched before from, since the last sample
	burned   uint64        // fuel, while watched
	fuel     uint64        // burned by the instance when that began
	looking  time.Duration // that the looks took
	stacks   map[string]*stack
	slice    int32 // of fuel, between two samples
	key      []byte
	seen     []api.FunctionDefinition // of the stack that key is of
	instance *Instance
}

// stack is one that was seen.
type stack struct {
	frames  []frame
	time    time.Duration
	samples int
}

// frame is a function by its index, and the offset of the instruction.
type frame struct {
	function uint32
	offset   uint64
	export   string // a name under which it is exported, or empty
}

// Place is a function of a stack, and the line of it where the module has lines.
type Place struct {
	Function string
	Line     string // walk.c:31, or empty
}

// Stack is one that was seen, and for how long.
type Stack struct {
	Places  []Place // the innermost first
	Time    time.Duration
	Samples int
}

// sampleEvery is about how long a guest runs between two samples.
const sampleEvery = 200 * time.Microsecond

// Slices of a guest that is sampled.
const (
	leastSampled = 1 << 8
	mostSampled  = mostSlice
)

// Imports is the function of that name, for guests that are sampled.
func (s *Sampler) Imports(ctx context.Context, wz wazero.Runtime, besides ...string) error {
	factory := experimental.FunctionListenerFactoryFunc(func(def api.FunctionDefinition) experimental.FunctionListener {
		if def.ModuleName() == meter.YieldModule && slices.Contains(def.ExportNames(), meter.YieldName) {
			return s
		}
		return nil
	})
	return Imports(experimental.WithFunctionListenerFactory(ctx, factory), wz, besides...)
}

// Watch says that a guest begins to run whose time counts, or that it has ended.
func (s *Sampler) Watch(on bool) {
	now := time.Now()
	if s.watched && !on {
		s.pending += now.Sub(s.from)
	}
	if s.instance != nil {
		used := s.instance.fuel.used()
		if s.watched {
			s.burned += used - s.fuel
		}
		s.fuel = used
	}
	s.watched, s.from = on, time.Now()
}

// Before implements experimental.FunctionListener: it takes a sample.
func (s *Sampler) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, frames experimental.StackIterator) {
	now := time.Now()
	if !s.watched {
		return
	}
	took := s.pending + now.Sub(s.from)
	if i := instanceOf(ctx); s.instance != i {
		s.instance, s.fuel, s.slice = i, i.fuel.used(), leastSlice
	}
	s.size(took)
	s.key, s.seen = s.key[:0], s.seen[:0]
	for frames.Next() {
		f := frames.Function()
		if f.Definition().GoFunction() != nil {
			continue // yield itself
		}
		s.seen = append(s.seen, f.Definition())
		s.key = binary.LittleEndian.AppendUint32(s.key, f.Definition().Index())
		s.key = binary.LittleEndian.AppendUint64(s.key, f.SourceOffsetForPC(frames.ProgramCounter()))
	}
	at := s.stacks[string(s.key)]
	if at == nil {
		at = &stack{frames: framesOf(s.key)}
		for k, def := range s.seen {
			if names := def.ExportNames(); len(names) > 0 {
				at.frames[k].export = names[0]
			}
		}
		if s.stacks == nil {
			s.stacks = map[string]*stack{}
		}
		s.stacks[string(s.key)] = at
	}
	at.time += took
	at.samples++
	s.pending, s.from = 0, time.Now()
	s.looking += s.from.Sub(now)
}

// framesOf reads a key.
func framesOf(key []byte) (frames []frame) {
	for each := range slices.Chunk(key, 12) {
		frames = append(frames, frame{function: binary.LittleEndian.Uint32(each), offset: binary.LittleEndian.Uint64(each[4:])})
	}
	return frames
}

// size sizes the slices by how long the last one took.
func (s *Sampler) size(took time.Duration) {
	switch {
	case took > 2*sampleEvery:
		s.slice = max(s.slice/2, leastSampled)
	case took < sampleEvery/2:
		s.slice = min(s.slice*2, mostSampled)
	}
}

// After implements experimental.FunctionListener: the guest has its next slice, of which it keeps as much as is to be sampled.
func (s *Sampler) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64) {
	i := instanceOf(ctx)
	if over := i.fuel.left() - s.slice; s.watched && over > 0 {
		i.fuel.granted -= uint64(over)
		i.fuel.set(s.slice)
	}
}

// Abort implements experimental.FunctionListener.
func (s *Sampler) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// Looking is how long taking samples took, which no stack has.
func (s *Sampler) Looking() time.Duration { return s.looking }

// Fuel returns how much fuel was burned while the guest was watched, from the first sample on.
func (s *Sampler) Fuel() uint64 { return s.burned }

// Rest is the time since the last sample, which no stack has.
func (s *Sampler) Rest() time.Duration { return s.pending }

// Stacks returns what was seen, by time. It must not be called while a guest runs.
func (s *Sampler) Stacks() []Stack {
	var list []Stack
	for _, at := range s.stacks {
		one := Stack{Time: at.time, Samples: at.samples}
		for _, f := range at.frames {
			place := Place{}
			place.Function, place.Line = s.instance.module.File.Layout.Place(f.function, f.offset, f.export)
			one.Places = append(one.Places, place)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Stack) int { return cmp.Compare(b.Time, a.Time) })
	return list
}
