package meter

import "math"

// Stack describes, as far as a module's code and data show it, the stack that compilers built on LLVM keep in linear
// memory. Its pointer is a mutable global, from which each function takes its frame. It grows downwards.
type Stack struct {
	Top      uint32 // where it begins, 0 if there is no such stack
	First    bool   // no data is below it: it ends at address 0
	Room     uint32 // its size, or its largest possible size if data is below it
	Frame    uint32 // the largest frame of a function
	Function uint32 // index of the function that has it
}

// Stack looks for the stack of the module.
func (m *Module) Stack() Stack {
	type frame struct{ bytes, function uint32 }
	largest := map[uint32]frame{}
	for f, body := range m.bodies {
		global, bytes, ok := m.frame(body)
		if ok && bytes > largest[global].bytes {
			largest[global] = frame{bytes, uint32(m.importedFunctions + f)}
		}
	}
	var s Stack
	for global, l := range largest {
		if top := m.initial(global); top > 0 && l.bytes > s.Frame {
			s = Stack{Top: top, Frame: l.bytes, Function: l.function}
		}
	}
	low, high := m.DataRange()
	s.First = low >= s.Top
	s.Room = s.Top
	if !s.First && high < s.Top {
		s.Room = s.Top - high
	}
	return s
}

// initial returns the first value of a mutable global of type i32 that the module has itself, 0 for any other.
func (m *Module) initial(global uint32) uint32 {
	k := int(global) - m.importedGlobals
	if k < 0 || k >= len(m.globals) || !m.globals[k].mutable || m.globals[k].valType != typeI32 {
		return 0
	}
	value, _ := m.constant(m.globals[k].init.reader())
	return value
}

// constant reads an expression that is one i32.const.
func (m *Module) constant(r *reader) (value uint32, ok bool) {
	if r.u8() != opI32Const {
		return 0, false
	}
	value = uint32(r.signed(32))
	return value, r.u8() == opEnd && r.err == nil
}

// DataRange returns where the data begins and ends that the module puts at constant addresses; low is the largest
// number if there is none.
func (m *Module) DataRange() (low, high uint32) {
	low = math.MaxUint32
	if !m.present[sectionData] {
		return low, 0
	}
	w := &rewriter{m: m, uses: map[string]bool{}}
	if w.planData() != nil {
		return low, 0
	}
	for _, s := range w.segs {
		if s.offset == nil || len(s.data) == 0 {
			continue
		}
		r := &reader{b: s.offset}
		r.u8()
		at := uint32(r.signed(32))
		low = min(low, at)
		high = max(high, at+min(uint32(len(s.data)), math.MaxUint32-at))
	}
	return low, high
}

// symbol is the knowledge about a value at the beginning of a function.
type symbol struct {
	kind   byte // 0 nothing, else one of these
	global uint32
	n      uint32
}

const (
	isGlobal = iota + 1 // the value of a global
	isNumber            // n
	isFrame             // the value of a global less n
)

// frame reads the beginning of a function that takes its frame from a global, and keeps the address in a local: that
// is what LLVM writes with and without optimisation. Stacks of other compilers go straight into their global.
func (m *Module) frame(body span) (global, bytes uint32, ok bool) {
	const most = 16 // instructions
	r := body.reader()
	for groups := r.count(2); groups > 0 && r.err == nil; groups-- {
		r.u32()
		r.u8()
	}
	var stack []symbol
	locals := map[uint32]symbol{}
	pop := func() (s symbol) {
		if n := len(stack); n > 0 {
			s, stack = stack[n-1], stack[:n-1]
		}
		return s
	}
	for range most {
		start := r.p
		in := m.next(r)
		if r.err != nil {
			return 0, 0, false
		}
		switch in.op {
		case opGlobalGet:
			stack = append(stack, symbol{kind: isGlobal, global: in.index})
		case opI32Const:
			number := &reader{b: r.b[start+1 : r.p]}
			stack = append(stack, symbol{kind: isNumber, n: uint32(number.signed(32))})
		case opLocalGet:
			stack = append(stack, locals[in.index])
		case opI32Sub, opI32Add:
			b, a := pop(), pop()
			stack = append(stack, less(a, b, in.op))
		case opLocalSet, opLocalTee:
			s := pop()
			if s.kind == isFrame {
				return s.global, s.n, true
			}
			if locals[in.index] = s; in.op == opLocalTee {
				stack = append(stack, s)
			}
		default:
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// less is the difference of a global and a number, in one of its two spellings.
func less(a, b symbol, op byte) symbol {
	if a.kind != isGlobal || b.kind != isNumber {
		return symbol{}
	}
	if op == opI32Add {
		b.n = -b.n
	}
	if int32(b.n) <= 0 {
		return symbol{}
	}
	return symbol{kind: isFrame, global: a.global, n: b.n}
}
