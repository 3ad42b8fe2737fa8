package meter

import "fmt"

// carriedLimit is the largest weight that a function's callers pay for it instead of itself.
const carriedLimit = 64

// importWeight is the weight of calling a host function.
const importWeight = 150

// maxWeight bounds the charge of one check, so that fuel cannot wrap around.
const maxWeight = 1 << 24

// survey reads every function once: it checks them, and finds those that need no check at their entry, because
// they are short, call nothing and so cannot recurse. Their loops still have theirs.
func (w *rewriter) survey() error {
	w.carried = make([]uint32, len(w.m.bodies))
	for f := range w.m.bodies {
		weight, pays, err := w.surveyBody(f)
		if err != nil {
			return err
		}
		if !pays && weight <= carriedLimit {
			w.carried[f] = max(weight, 1)
		}
	}
	return nil
}

// surveyBody returns the weight of a function outside of its loops, and whether it must pay at its entry.
func (w *rewriter) surveyBody(f int) (weight uint32, pays bool, err error) {
	r := w.m.bodies[f].reader()
	locals := w.locals(r, f)
	var loops, depth int // depth counts blocks; loops is the depth of the outermost open loop, 0 if there is none
	for r.err == nil {
		in := w.m.next(r)
		if r.err != nil {
			break
		}
		if in.op >= opLocalGet && in.op <= opLocalTee && uint64(in.index) >= locals {
			r.fail("local %d of %d", in.index, locals)
		}
		if in.changesTable() {
			w.state("code that changes its tables or drops segments")
		}
		pays = pays || in.op == opCall || in.op == opCallIndirect || in.takesLength()
		if loops == 0 {
			weight = min(weight+in.weight(), maxWeight)
		}
		switch in.op {
		case opBlock, opLoop, opIf:
			depth++
			if in.op == opLoop && loops == 0 {
				loops = depth
			}
		case opEnd:
			if depth == 0 {
				return weight, pays, r.atEnd()
			}
			if loops == depth {
				loops = 0
			}
			depth--
		}
	}
	return 0, false, r.err
}

// atEnd returns an error if there is anything left.
func (r *reader) atEnd() error {
	if r.err == nil && r.p != len(r.b) {
		r.fail("function of %d bytes ends after %d", len(r.b), r.p)
	}
	return r.err
}

// locals passes over the declarations of locals and returns their number, parameters included.
func (w *rewriter) locals(r *reader, f int) uint64 {
	const most = 50_000
	n := uint64(len(w.m.Types[w.m.Functions[f]].Params))
	for groups := r.count(2); groups > 0 && r.err == nil; groups-- {
		n += uint64(r.u32())
		r.checkValType(r.u8())
		if n > most {
			r.fail("more than %d locals", most)
		}
	}
	return n
}

// code writes the function bodies with their checks, and the function that copies data segments.
func (w *rewriter) code() error {
	n := len(w.m.bodies)
	if w.result.Data {
		n++
	}
	if n == 0 && !w.m.present[sectionCode] {
		return nil
	}
	b := appendU32(make([]byte, 0, len(w.m.sections[sectionCode].b)*3/2), uint32(n))
	var scratch metered
	for f := range w.m.bodies {
		if err := scratch.rewrite(w, f); err != nil {
			return err
		}
		b = appendU32(b, uint32(len(scratch.head)+len(scratch.out)))
		b = append(append(b, scratch.head...), scratch.out...)
	}
	if w.result.Data {
		body := w.dataBody()
		b = append(appendU32(b, uint32(len(body))), body...)
	}
	w.emit(sectionCode, b)
	return nil
}

// metered writes one function. Its memory is used again for the next.
type metered struct {
	w      *rewriter
	head   []byte // declarations of locals
	out    []byte
	local  uint32 // the added local, for lengths
	frames []frame
}

// frame is an open block. Instructions weigh on the innermost one that has a check.
type frame struct {
	check  int // place of the charge in out, 0 if the block has no check of its own
	weight uint32
}

func (s *metered) rewrite(w *rewriter, f int) error {
	*s = metered{w: w, head: s.head[:0], out: s.out[:0], frames: s.frames[:0]}
	r := w.m.bodies[f].reader()
	s.local = uint32(w.locals(r, f))
	declared := r.p
	s.frames = append(s.frames, frame{weight: 1})
	if w.carried[f] == 0 {
		s.check()
	}
	usesLocal := false
	for len(s.frames) > 0 && r.err == nil {
		start := r.p
		in := w.m.next(r)
		if r.err != nil {
			break
		}
		usesLocal = usesLocal || in.takesLength()
		s.instruction(in, r.b[start:r.p])
	}
	if err := r.atEnd(); err != nil {
		return err
	}
	s.declare(r.b[:declared], usesLocal)
	return nil
}

// declare writes the declarations of locals, with one more where it is used.
func (s *metered) declare(old []byte, more bool) {
	if !more {
		s.head = append(s.head, old...)
		return
	}
	r := &reader{b: old}
	groups := r.u32()
	s.head = append(appendU32(s.head, groups+1), old[r.p:]...)
	s.head = append(s.head, 1, typeI32)
}

// instruction copies one instruction, with what belongs before and after it.
func (s *metered) instruction(in instruction, code []byte) {
	s.weigh(in)
	if in.takesLength() {
		s.chargeLength()
	}
	switch in.op {
	case opCall, opRefFunc:
		s.out = appendU32(append(s.out, in.op), s.w.shift(in.index))
	default:
		s.out = append(s.out, code...)
	}
	switch in.op {
	case opBlock, opIf:
		s.frames = append(s.frames, frame{})
	case opLoop:
		s.frames = append(s.frames, frame{weight: 1})
		s.check()
	case opEnd:
		s.close()
	}
}

// weigh adds the weight of an instruction to the check that pays for it.
func (s *metered) weigh(in instruction) {
	weight := in.weight()
	if in.op == opCall {
		own := int(in.index) - s.w.m.importedFunctions
		if own < 0 {
			weight = importWeight
		} else {
			weight += s.w.carried[own]
		}
	}
	s.add(weight)
}

func (s *metered) add(weight uint32) {
	for k := len(s.frames) - 1; k >= 0; k-- {
		if s.frames[k].check > 0 || k == 0 {
			s.frames[k].weight = min(s.frames[k].weight+weight, maxWeight)
			return
		}
	}
}

// close ends the innermost block. Its check, if it has one, now knows what to charge.
func (s *metered) close() {
	top := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	if top.check > 0 {
		putWeight(s.out[top.check:], top.weight)
	}
}

// check charges the innermost block; how much is filled in when the block ends.
func (s *metered) check() {
	s.out = appendU32(append(s.out, opGlobalGet), s.w.fuel)
	s.out = append(s.out, opI32Const)
	s.frames[len(s.frames)-1].check = len(s.out)
	s.out = append(s.out, 0, 0, 0, 0, opI32Sub)
	s.out = appendU32(append(s.out, opGlobalSet), s.w.fuel)
	s.yieldBelowZero()
}

// chargeLength charges a quarter of a unit for each byte of a bulk operation, whose length is on the stack.
func (s *metered) chargeLength() {
	s.out = appendU32(append(s.out, opLocalTee), s.local)
	s.out = appendU32(append(s.out, opGlobalGet), s.w.fuel)
	s.out = appendU32(append(s.out, opLocalGet), s.local)
	s.out = append(s.out, opI32Const, 2, opI32ShrU, opI32Sub)
	s.out = appendU32(append(s.out, opGlobalSet), s.w.fuel)
	s.yieldBelowZero()
}

// yieldBelowZero calls the host when there is no fuel left. At most 2^30 is charged at a time, from a fuel of
// zero or more, so it cannot wrap around to a positive number unseen.
func (s *metered) yieldBelowZero() {
	s.out = appendU32(append(s.out, opGlobalGet), s.w.fuel)
	s.out = append(s.out, opI32Const, 0, opI32LtS, opIf, typeNothing)
	s.out = appendU32(append(s.out, opCall), s.w.yield)
	s.out = append(s.out, opEnd)
}

// putWeight writes a charge into the four bytes that were left for it.
func putWeight(b []byte, weight uint32) {
	if weight > maxWeight {
		panic(fmt.Sprintf("meter: weight %d", weight))
	}
	b[0], b[1], b[2], b[3] = byte(weight)|0x80, byte(weight>>7)|0x80, byte(weight>>14)|0x80, byte(weight>>21)
}
