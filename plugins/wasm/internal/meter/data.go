package meter

// segment is one active data segment with a constant place in memory.
type segment struct {
	offset []byte // the i32.const that says where
	data   []byte
}

// planData decides whether data segments become a call. They do where each has a constant place and no code can
// name them, which is what compilers write without threads; else they stay as they are.
func (w *rewriter) planData() error {
	if !w.m.present[sectionData] || w.m.present[sectionDataCount] || len(w.m.Memories) == 0 {
		return nil
	}
	r := w.m.sections[sectionData].reader()
	for n := r.count(2); n > 0; n-- {
		flags := r.u32()
		if flags == 2 && r.u32() != 0 || flags == 1 || flags > 2 {
			w.segs = nil
			return r.err
		}
		start := r.p
		in := w.m.next(r)
		s := segment{offset: r.b[start:r.p]}
		if r.err != nil || in.op != opI32Const || w.m.next(r).op != opEnd {
			w.segs = nil
			return r.err
		}
		s.data = r.take(r.u32())
		if r.err != nil {
			return r.err
		}
		w.segs = append(w.segs, s)
	}
	w.result.Data = len(w.segs) > 0
	return r.atEnd()
}

// dataCount tells the number of data segments ahead of the code that names them.
func (w *rewriter) dataCount() error {
	switch {
	case w.result.Data:
		w.emit(sectionDataCount, appendU32(nil, uint32(len(w.segs))))
	case w.m.present[sectionDataCount]:
		w.emit(sectionDataCount, w.m.sections[sectionDataCount].b)
	}
	return nil
}

// dataBody is the function that puts every segment in its place.
func (w *rewriter) dataBody() []byte {
	b := []byte{0} // no locals
	for k, s := range w.segs {
		b = append(b, s.offset...)
		b = append(b, opI32Const, 0, opI32Const)
		b = appendS32(b, uint32(len(s.data)))
		b = appendU32(append(b, opBulk, bulkMemoryInit), uint32(k))
		b = append(b, 0)
	}
	return append(b, opEnd)
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
	if !w.m.present[sectionData] {
		return nil
	}
	if !w.result.Data {
		w.emit(sectionData, w.m.sections[sectionData].b)
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
	n := r.count(2)
	b := appendU32(nil, uint32(n))
	for ; n > 0 && r.err == nil; n-- {
		b = w.element(r, b)
	}
	w.emit(sectionElement, b)
	return r.atEnd()
}

func (w *rewriter) element(r *reader, b []byte) []byte {
	flags := r.u32()
	if flags > 7 {
		r.fail("element segment of form %d", flags)
	}
	b = appendU32(b, flags)
	passive, explicit, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0
	if !passive {
		if explicit {
			b = appendU32(b, r.u32())
		}
		b = w.expression(r, b)
	}
	if passive || explicit {
		b = append(b, r.u8())
	}
	count := r.count(1)
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
		b = appendU32(b, w.shift(f))
	}
	return b
}
