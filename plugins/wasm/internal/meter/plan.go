package meter

// carriedLimit is the largest weight that a function's callers pay for it instead of itself.
const carriedLimit = 64

// maxWeight bounds the charge of one check, so that fuel cannot wrap around.
const maxWeight = 1 << 24

// plan is how a function will be metered.
type plan struct {
	locals  uint32 // declared ones and parameters
	carried uint32 // the fuel that its callers pay for it; 0 if it pays itself
	checks  bool   // at its entry, because it may recurse or do much outside of loops
	cached  bool   // it keeps the fuel in a local while it runs
	lengths bool   // it has bulk operations
	loops   bool
	added   int // bytes that metering adds to its code, about
}

// survey reads every function once: it checks them and plans how to meter them.
//
// A function with loops keeps the fuel in a local, because a global is written to memory at each turn. A short
// one that calls nothing, and so cannot recurse, has no check at all: its callers pay for it.
func (w *rewriter) survey() error {
	w.plans = make([]plan, len(w.m.bodies))
	for f := range w.m.bodies {
		p := &w.plans[f]
		weight, err := w.surveyBody(f, p)
		if err != nil {
			return err
		}
		p.checks = p.checks || weight > carriedLimit
		p.cached = p.loops && len(w.m.Types[w.m.Functions[f]].Results) <= 1
		if !p.checks && !p.loops {
			p.carried = max(weight, 1)
		}
	}
	return nil
}

// surveyBody notes a function's contents and returns its weight outside of its loops.
func (w *rewriter) surveyBody(f int, p *plan) (weight uint32, err error) {
	r := w.m.bodies[f].reader()
	p.locals = w.locals(r, f)
	w.sum.locals += uint64(p.locals)
	r.within(w.sum.locals, maxAllLocals, "locals of all functions")
	var outermost, depth, blocks int // depth counts open blocks; outermost is the depth of the outermost open loop, or 0
	for r.err == nil {
		in := w.m.next(r)
		w.surveyInstruction(r, in, p, depth)
		if outermost == 0 {
			weight = min(weight+in.weight(), maxWeight)
		}
		switch in.op {
		case opBlock, opLoop, opIf:
			depth++
			blocks++
			r.within(uint64(depth), maxDepth, "blocks within blocks")
			r.within(uint64(blocks)*uint64(p.locals), maxLocalsBlocks, "locals times blocks of a function")
			if in.op == opLoop && outermost == 0 {
				outermost = depth
			}
		case opEnd:
			if depth == 0 {
				return weight, r.atEnd()
			}
			if outermost == depth {
				outermost = 0
			}
			depth--
		}
	}
	return 0, r.err
}

// surveyInstruction checks the indexes that the rewriter shifts and notes its needs in the plan.
func (w *rewriter) surveyInstruction(r *reader, in instruction, p *plan, depth int) {
	switch {
	case in.op >= opLocalGet && in.op <= opLocalTee && in.index >= p.locals:
		r.fail("local %d of %d", in.index, p.locals)
	case in.op >= opBranch && in.op <= opBranchTable && uint64(in.index) > uint64(depth):
		r.fail("label %d of %d", in.index, depth+1)
	case in.op == opLoop:
		p.loops = true
		p.added += 44
	case in.op == opCall, in.op == opCallIndirect:
		p.checks = true
		p.added += 12
	case in.takesLength():
		p.checks, p.lengths = true, true
		p.added += 36
	}
	w.sum.targets += uint64(in.targets)
	w.sum.operands += uint64(in.operands)
	r.within(w.sum.targets, maxBranchTargets, "targets in tables of branches")
	r.within(w.sum.operands, maxOperands, "operands of calls and blocks")
	if f := in.feature(); f != "" {
		w.uses[f] = true
	}
	if in.changesTable() {
		w.state("code that changes its tables or drops segments")
	}
}

// atEnd returns an error if there is anything left.
func (r *reader) atEnd() error {
	if r.err == nil && r.p != len(r.b) {
		r.fail("function of %d bytes ends after %d", len(r.b), r.p)
	}
	return r.err
}

// locals passes over the declarations of locals and returns their number, parameters included.
func (w *rewriter) locals(r *reader, f int) uint32 {
	n := uint64(len(w.m.Types[w.m.Functions[f]].Params))
	for groups := r.count(2); groups > 0 && r.err == nil; groups-- {
		n += uint64(r.u32())
		r.checkValType(r.u8())
		r.within(n, maxLocals, "locals of a function")
	}
	return uint32(n)
}
