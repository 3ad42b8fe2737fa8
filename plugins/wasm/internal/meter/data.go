package meter

import "fmt"

// segment is one data segment.
type segment struct {
	offset []byte // the i32.const that says where it goes, nil if its place is not that simple
	data   []byte
}

// planData decides whether data segments become a call. They do if each has a constant address and no code can name
// them, as compilers write them without threads; else they do not change.
func (w *rewriter) planData() error {
	if !w.m.present[sectionData] {
		return nil
	}
	r := w.m.sections[sectionData].reader()
	simple := !w.m.present[sectionDataCount] && len(w.m.Memories) > 0
	for n := r.counted(2, maxData, "data segments"); n > 0 && r.err == nil; n-- {
		s := w.segment(r)
		simple = simple && s.offset != nil
		w.segs = append(w.segs, s)
	}
	w.result.Data = simple && len(w.segs) > 0
	return r.atEnd()
}

func (w *rewriter) segment(r *reader) segment {
	const passive, explicit = 1, 2
	var s segment
	switch kind := r.u32(); {
	case kind == explicit && r.u32() != 0:
		r.unsupported("several memories")
	case kind > explicit:
		r.fail("data segment of form %d", kind)
	case kind != passive:
		start := r.p
		if in := w.m.next(r); in.op == opI32Const {
			s.offset = r.b[start:r.p]
			if w.m.next(r).op == opEnd {
				break
			}
			s.offset = nil
		}
		r.p = start
		w.m.skipExpression(r)
	}
	s.data = r.take(r.u32())
	return s
}

// dataCount tells the number of data segments ahead of the code that names them.
func (w *rewriter) dataCount() error {
	if w.result.Data {
		w.emit(sectionDataCount, appendU32(nil, uint32(len(w.segs))))
		return nil
	}
	w.keep(sectionDataCount)
	return nil
}

// placedAtOnce is how many segments one function copies. A single function for all of them would take the compiler
// gigabytes: Go's linker writes up to a hundred thousand.
const placedAtOnce = 256

// dataFunctions returns how many functions copy segments: one for each part of them, and then one that calls them if
// there are several.
func (w *rewriter) dataFunctions() int {
	if !w.result.Data {
		return 0
	}
	parts := (len(w.segs) + placedAtOnce - 1) / placedAtOnce
	if parts > 1 {
		parts++
	}
	return parts
}

// dataBodies appends the bodies of these functions.
func (w *rewriter) dataBodies(b []byte) []byte {
	add := func(body []byte) { b = append(appendU32(b, uint32(len(body))), body...) }
	calls := []byte{0} // no locals
	f := uint32(w.m.functionCount()) + 1
	for k := 0; k < len(w.segs); k += placedAtOnce {
		body := []byte{0}
		for n, s := range w.segs[k:min(k+placedAtOnce, len(w.segs))] {
			body = append(body, s.offset...)
			body = append(body, opI32Const, 0, opI32Const)
			body = appendS32(body, uint32(len(s.data)))
			body = append(appendU32(append(body, opBulk, bulkMemoryInit), uint32(k+n)), 0)
		}
		add(append(body, opEnd))
		calls = appendU32(append(calls, opCall), f)
		f++
	}
	if len(w.segs) > placedAtOnce {
		add(append(calls, opEnd))
	}
	return b
}

// appendS32 appends a number below 2^31 as a signed one.
func appendS32(b []byte, v uint32) []byte {
	for v >= 0x40 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func (w *rewriter) data() error {
	if !w.result.Data {
		w.keep(sectionData)
		return nil
	}
	const passive = 1
	b := appendU32(make([]byte, 0, len(w.m.sections[sectionData].b)), uint32(len(w.segs)))
	for _, s := range w.segs {
		b = append(appendU32(append(b, passive), uint32(len(s.data))), s.data...)
	}
	w.emit(sectionData, b)
	return nil
}

// elements copies the element segments with the new indexes of their functions.
func (w *rewriter) elements() error {
	if !w.m.present[sectionElement] {
		return nil
	}
	r := w.m.sections[sectionElement].reader()
	n := r.counted(2, maxElements, "segments for tables")
	b := appendU32(nil, uint32(n))
	for ; n > 0 && r.err == nil; n-- {
		b = w.element(r, b)
	}
	w.emit(sectionElement, b)
	return r.atEnd()
}

// constant returns the value of an expression that is a constant of 32 bits alone, 0 for any other.
func constant(expression []byte) uint32 {
	if len(expression) < 3 || expression[0] != opI32Const || expression[len(expression)-1] != opEnd {
		return 0
	}
	v := int64(0)
	for i, x := range expression[1 : len(expression)-1] {
		v |= int64(x&0x7f) << (7 * i)
		if x&0x80 == 0 {
			if i+3 < len(expression) {
				return 0 // more follows
			}
			if x&0x40 != 0 {
				v |= -1 << (7 * (i + 1))
			}
		}
	}
	return uint32(v)
}

func (w *rewriter) element(r *reader, b []byte) []byte {
	flags := r.u32()
	if flags > 7 {
		r.fail("element segment of form %d", flags)
	}
	b = appendU32(b, flags)
	passive, explicit, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0
	table, offset := uint32(0), uint32(0)
	if !passive {
		if explicit {
			table = r.u32()
			b = appendU32(b, table)
		}
		at := len(b)
		b = w.expression(r, b)
		offset = constant(b[at:])
	}
	if passive || explicit {
		b = append(b, r.u8())
	}
	count := r.count(1)
	w.sum.entries += uint64(count)
	r.within(w.sum.entries, maxTableEntries, "entries in segments for tables")
	if !passive && int(table) < len(w.tableMin) && uint64(offset)+uint64(count) > uint64(w.tableMin[table]) && w.result.Outside == "" {
		w.result.Outside = fmt.Sprintf("a segment of %d functions at %d of table %d, which begins with %d entries", count, offset, table, w.tableMin[table])
	}
	b = appendU32(b, uint32(count))
	for ; count > 0 && r.err == nil; count-- {
		if expressions {
			b = w.expression(r, b)
			continue
		}
		f := r.u32()
		if int(f) >= w.m.functionCount() {
			r.fail("function %d of %d", f, w.m.functionCount())
		}
		w.startNamed = w.startNamed || f == w.m.start
		b = appendU32(b, w.shift(f))
	}
	return b
}
