package meter

import (
	"fmt"
	"slices"
)

// importWeight is the weight of calling a host function.
const importWeight = 150

// code writes the function bodies with their checks, and the function that copies data segments.
func (w *rewriter) code() error {
	n := len(w.m.bodies) + w.dataFunctions()
	if n == 0 && !w.m.present[sectionCode] {
		return nil
	}
	// Straight into the module, with room for its length: this section is most of a module, and a copy would be another.
	const sizeBytes = 5
	begin := len(w.out) + 1 + sizeBytes
	room := 0
	for f, body := range w.m.bodies {
		room += w.plans[f].room(body)
	}
	w.out = slices.Grow(w.out, room)
	w.out = appendU32(append(w.out, sectionCode, 0, 0, 0, 0, 0), uint32(n))
	scratch := metered{follow: len(w.m.Lines) > 0}
	for f := range w.m.bodies {
		if err := scratch.rewrite(w, f); err != nil {
			return err
		}
		w.out = appendU32(w.out, uint32(len(scratch.head)+len(scratch.out)))
		if len(w.result.Moved)+len(scratch.moved) > maxMoved {
			scratch.follow, scratch.moved, w.result.Moved = false, nil, nil
		}
		w.moved(scratch.moved, len(w.out)-begin+len(scratch.head), w.m.bodies[f].base-w.m.sections[sectionCode].base)
		w.out = append(append(w.out, scratch.head...), scratch.out...)
	}
	if w.result.Data {
		w.out = w.dataBodies(w.out)
	}
	size := w.out[begin-sizeBytes : begin]
	for k, rest := 0, len(w.out)-begin; k < sizeBytes; k, rest = k+1, rest>>7 {
		size[k] = byte(rest) | 0x80
	}
	size[sizeBytes-1] &^= 0x80
	return nil
}

// room is about as much as the metered code of a function takes. Growing the buffer step by step would take several times
// as much.
func (p *plan) room(body span) int { return len(body.b) + p.added + 64 }

// metered writes one function. Its memory is used again for the next.
type metered struct {
	plan
	w      *rewriter
	head   []byte // declarations of locals
	out    []byte
	frames []frame
	follow bool    // moved is wanted
	moved  []Moved // offsets in out and in the body
}

// frame is an open block. Instructions add to the innermost charge.
type frame struct {
	charge  int // place of the block's charge in out, 0 if it has none
	weight  uint32
	pays    int  // index of the innermost frame that has a charge, this one or around it; -1 if none has
	wrapped bool // a loop with blocks around it
	wraps   int  // wrapped frames, this one and the ones around it
}

func (s *metered) rewrite(w *rewriter, f int) error {
	*s = metered{plan: w.plans[f], w: w, head: s.head[:0], out: s.out[:0], frames: s.frames[:0],
		follow: s.follow, moved: s.moved[:0]}
	r := w.m.bodies[f].reader()
	s.out = slices.Grow(s.out, s.room(w.m.bodies[f]))
	w.locals(r, f)
	s.declare(r.b[:r.p])
	s.push(frame{})
	s.enter(w.m.Types[w.m.Functions[f]].Results)
	for len(s.frames) > 0 && r.err == nil {
		start := r.p
		in := w.m.next(r)
		if r.err != nil {
			break
		}
		if in.op == opRefFunc && w.m.HasStart && in.index == w.m.start && !w.startNamed {
			r.fail("undeclared reference to function %d", in.index) // which the export of the start function would declare
		}
		s.weigh(in)
		if s.follow && len(s.moved) <= maxMoved {
			s.moved = append(s.moved, Moved{uint32(len(s.out)), uint32(start)})
		}
		s.instruction(in, r.b[start:r.p])
	}
	return r.atEnd()
}

// push opens a frame.
func (s *metered) push(f frame) {
	f.pays = -1
	if n := len(s.frames); n > 0 {
		f.pays, f.wraps = s.frames[n-1].pays, s.frames[n-1].wraps
	}
	if f.wrapped {
		f.wraps++
	}
	s.frames = append(s.frames, f)
}

// Locals that are added: the fuel where it is cached, and a length of a bulk operation.
func (s *metered) fuelLocal() uint32 { return s.locals }

func (s *metered) lengthLocal() uint32 {
	if s.cached {
		return s.locals + 1
	}
	return s.locals
}

// declare writes the declarations of locals with the added ones.
func (s *metered) declare(old []byte) {
	added := s.lengthLocal() - s.locals
	if s.lengths {
		added++
	}
	if added == 0 {
		s.head = append(s.head, old...)
		return
	}
	r := &reader{b: old}
	groups := r.u32()
	s.head = append(appendU32(s.head, groups+1), old[r.p:]...)
	s.head = append(s.head, byte(added), typeI32)
}

// enter writes the beginning of a function. Where the fuel is cached the body becomes a block, so that branches
// out of the function pass by its end, where the fuel goes back.
func (s *metered) enter(results []byte) {
	switch {
	case s.cached:
		s.global(opGlobalGet)
		s.local(opLocalSet, s.fuelLocal())
		if s.checks {
			s.yieldBelowZero()
		}
		s.charge()
		blockType := byte(typeNothing)
		if len(results) == 1 {
			blockType = results[0]
		}
		s.out = append(s.out, opBlock, blockType)
	case s.carried == 0:
		s.charge()
		s.yieldBelowZero()
	}
}

// instruction copies one instruction, with what belongs before and after it.
func (s *metered) instruction(in instruction, code []byte) {
	switch in.op {
	case opCall, opCallIndirect:
		s.flush()
		if in.op == opCall {
			s.out = appendU32(append(s.out, opCall), s.w.shift(in.index))
		} else {
			s.out = append(s.out, code...)
		}
		s.refill()
	case opRefFunc:
		s.out = appendU32(append(s.out, opRefFunc), s.w.shift(in.index))
	case opReturn:
		s.flush()
		s.out = append(s.out, code...)
	case opBranch, opBranchIf:
		s.out = appendU32(append(s.out, in.op), s.label(in.index))
	case opBranchTable:
		s.branchTable(code)
	case opBlock, opIf:
		s.out = append(s.out, code...)
		s.push(frame{})
	case opLoop:
		s.loop(in, code)
	case opEnd:
		s.end()
	default:
		if in.takesLength() {
			s.chargeLength()
		}
		s.out = append(s.out, code...)
	}
}

// loop opens a loop. If the fuel is cached, the call of the host is outside the loop: a call inside would cost
// registers at each turn even if it is never made. The loop becomes
//
//	block $out                  of the loop's type
//	  loop $again
//	    block $empty
//	      loop                  the module's own
//	        br_if $empty        if the fuel is below zero
//	        ...
//	      end
//	      br $out
//	    end
//	    call rl.yield
//	    br $again
//	  end
//	  unreachable
//	end
func (s *metered) loop(in instruction, code []byte) {
	if !s.cached || in.params {
		s.out = append(s.out, code...)
		s.push(frame{})
		s.charge()
		s.yieldBelowZero()
		return
	}
	s.out = append(append(s.out, opBlock), code[1:]...)
	s.out = append(s.out, opLoop, typeNothing, opBlock, typeNothing)
	s.out = append(s.out, code...)
	s.push(frame{wrapped: true})
	s.local(opLocalGet, s.fuelLocal())
	s.out = append(s.out, opI32Const, 0, opI32LtS, opBranchIf, 1)
	s.charge()
}

// wrapping is the number of blocks that loop puts around one.
const wrapping = 3

// end closes a block; its charge is known now.
func (s *metered) end() {
	top := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	if top.charge > 0 {
		putWeight(s.out[top.charge:], top.weight)
	}
	s.out = append(s.out, opEnd)
	if top.wrapped {
		s.out = append(s.out, opBranch, 2, opEnd)
		s.yield()
		s.out = append(s.out, opBranch, 0, opEnd, opUnreachable, opEnd)
	}
	if len(s.frames) == 0 && s.cached {
		s.flush()
		s.out = append(s.out, opEnd)
	}
}

// label returns the new number of a label: the blocks around wrapped loops lie between.
func (s *metered) label(n uint32) uint32 {
	top := len(s.frames) - 1
	return n + wrapping*uint32(s.frames[top].wraps-s.frames[top-int(n)].wraps)
}

func (s *metered) branchTable(code []byte) {
	r := &reader{b: code, p: 1}
	n := r.u32()
	s.out = appendU32(append(s.out, opBranchTable), n)
	for range n + 1 {
		s.out = appendU32(s.out, s.label(r.u32()))
	}
}

// weigh adds the weight of an instruction to the charge that pays for it.
func (s *metered) weigh(in instruction) {
	weight := in.weight()
	if in.op == opCall {
		own := int(in.index) - s.w.m.importedFunctions
		if own < 0 {
			weight = importWeight
		} else {
			weight += s.w.plans[own].carried
		}
	}
	if k := s.frames[len(s.frames)-1].pays; k >= 0 {
		s.frames[k].weight = min(s.frames[k].weight+weight, maxWeight)
	}
}

// charge burns fuel for the innermost block; how much is filled in when the block ends.
func (s *metered) charge() {
	s.fuel(opLocalGet, opGlobalGet)
	s.out = append(s.out, opI32Const)
	top := &s.frames[len(s.frames)-1]
	top.charge, top.weight, top.pays = len(s.out), 1, len(s.frames)-1
	s.out = append(s.out, 0, 0, 0, 0, opI32Sub)
	s.fuel(opLocalSet, opGlobalSet)
}

// chargeLength charges a quarter of a unit for each byte of a bulk operation, whose length is on the stack.
func (s *metered) chargeLength() {
	s.local(opLocalTee, s.lengthLocal())
	s.fuel(opLocalGet, opGlobalGet)
	s.local(opLocalGet, s.lengthLocal())
	s.out = append(s.out, opI32Const, 2, opI32ShrU, opI32Sub)
	s.fuel(opLocalSet, opGlobalSet)
	s.yieldBelowZero()
}

// yieldBelowZero calls the host when there is no fuel left. At most 2^30 is charged between two of these, from a
// fuel of zero or more, so it cannot wrap around to a positive number unseen.
//
// The likely way is a branch to the end of a block, not an empty else: the compiler then keeps values in
// registers on that way.
func (s *metered) yieldBelowZero() {
	s.out = append(s.out, opBlock, typeNothing)
	s.fuel(opLocalGet, opGlobalGet)
	s.out = append(s.out, opI32Const, 0, opI32GeS, opBranchIf, 0)
	s.yield()
	s.out = append(s.out, opEnd)
}

func (s *metered) yield() {
	s.flush()
	s.out = appendU32(append(s.out, opCall), s.w.yield)
	s.refill()
}

// flush writes cached fuel to the global, refill reads it again.
func (s *metered) flush() {
	if s.cached {
		s.local(opLocalGet, s.fuelLocal())
		s.global(opGlobalSet)
	}
}

func (s *metered) refill() {
	if s.cached {
		s.global(opGlobalGet)
		s.local(opLocalSet, s.fuelLocal())
	}
}

// fuel appends the one instruction for cached fuel, the other for the global.
func (s *metered) fuel(cached, global byte) {
	if s.cached {
		s.local(cached, s.fuelLocal())
		return
	}
	s.global(global)
}

func (s *metered) local(op byte, index uint32) { s.out = appendU32(append(s.out, op), index) }

func (s *metered) global(op byte) { s.out = appendU32(append(s.out, op), s.w.fuel) }

// putWeight writes a charge into the four bytes that were left for it.
func putWeight(b []byte, weight uint32) {
	if weight > maxWeight {
		panic(fmt.Sprintf("meter: weight %d", weight))
	}
	b[0], b[1], b[2], b[3] = byte(weight)|0x80, byte(weight>>7)|0x80, byte(weight>>14)|0x80, byte(weight>>21)
}
