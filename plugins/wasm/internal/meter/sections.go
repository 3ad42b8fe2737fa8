package meter

import "unicode/utf8"

func (m *Module) types(r *reader) {
	for n := r.counted(3, maxTypes, "signatures"); n > 0 && r.err == nil; n-- {
		if form := r.u8(); form != 0x60 {
			r.unsupported("garbage-collected types")
			return
		}
		t := FuncType{Params: r.valTypes(), Results: r.valTypes()}
		r.within(uint64(len(t.Params)), maxParams, "parameters in a signature")
		r.within(uint64(len(t.Results)), maxResults, "results in a signature")
		m.Types = append(m.Types, t)
	}
}

func (r *reader) valTypes() []byte {
	types := r.take(r.u32())
	for _, t := range types {
		r.checkValType(t)
	}
	return types
}

// checkValType rejects value types that take more than one byte or that the runtime does not know.
func (r *reader) checkValType(t byte) {
	switch {
	case t >= typeV128 && t <= typeI32, t == typeFunc, t == typeExtern:
	case t == 0x63 || t == 0x64:
		r.unsupported("typed function references")
	case t == 0x69:
		r.unsupported("exception handling")
	default:
		r.fail("value type %#x", t)
	}
}

func (m *Module) imports(r *reader) {
	for n := r.counted(4, maxImports, "imports"); n > 0 && r.err == nil; n-- {
		i := Import{Module: r.symbol(), Name: r.symbol(), Kind: r.u8()}
		switch i.Kind {
		case KindFunction:
			i.Type = m.typeIndex(r)
			m.importedFunctions++
		case KindTable:
			r.checkValType(r.u8())
			r.limits()
		case KindMemory:
			r.limits()
		case KindGlobal:
			r.checkValType(r.u8())
			r.u8()
			m.importedGlobals++
		case KindTag:
			r.unsupported("exception handling")
		default:
			r.fail("import of kind %d", i.Kind)
		}
		m.Imports = append(m.Imports, i)
	}
}

func (m *Module) typeIndex(r *reader) uint32 {
	i := r.u32()
	if r.err == nil && int(i) >= len(m.Types) {
		r.fail("signature %d of %d", i, len(m.Types))
	}
	return i
}

func (r *reader) limits() Memory {
	flags := r.u8()
	switch {
	case flags&2 != 0:
		r.unsupported("shared memory (threads)")
	case flags&4 != 0:
		r.unsupported("64-bit memory")
	case flags > 1:
		r.fail("limits of form %d", flags)
	}
	l := Memory{Min: r.u32(), HasMax: flags&1 != 0}
	if l.HasMax {
		l.Max = r.u32()
	}
	return l
}

func (m *Module) functions(r *reader) {
	for n := r.counted(1, maxFunctions, "functions"); n > 0 && r.err == nil; n-- {
		m.Functions = append(m.Functions, m.typeIndex(r))
	}
}

func (m *Module) tableSection(r *reader) {
	m.tables = r.counted(3, maxTables, "tables")
	for n := m.tables; n > 0 && r.err == nil; n-- {
		r.tableType()
	}
}

// tableType reads the type of one table.
func (r *reader) tableType() (element byte, limits Memory) {
	element = r.u8()
	if element == typeNothing {
		r.unsupported("typed function references")
	}
	r.checkValType(element)
	limits = r.limits()
	r.within(uint64(limits.Min), maxTableEntries, "entries in a table")
	return element, limits
}

func (m *Module) memories(r *reader) {
	n := r.count(2)
	if n > 1 {
		r.unsupported("several memories")
	}
	for ; n > 0 && r.err == nil; n-- {
		m.Memories = append(m.Memories, r.limits())
	}
}

func (m *Module) globalSection(r *reader) {
	for n := r.counted(4, maxGlobals, "globals"); n > 0 && r.err == nil; n-- {
		g := global{valType: r.u8()}
		r.checkValType(g.valType)
		switch r.u8() {
		case 0:
		case 1:
			g.mutable = true
		default:
			r.fail("mutability of a global")
		}
		start := r.p
		m.skipExpression(r)
		if r.err == nil {
			g.init = span{r.b[start:r.p], r.base + start}
		}
		m.globals = append(m.globals, g)
	}
}

// skipExpression passes over a constant expression.
func (m *Module) skipExpression(r *reader) {
	for r.err == nil {
		if in := m.next(r); in.op == opEnd {
			return
		} else if in.op >= opBlock && in.op <= opIf {
			r.fail("block in a constant expression")
		}
	}
}

func (m *Module) exports(r *reader) {
	for n := r.counted(3, maxExports, "exports"); n > 0 && r.err == nil; n-- {
		e := Export{Name: r.symbol(), Kind: r.u8(), Index: r.u32()}
		switch {
		case e.Kind > KindTag:
			r.fail("export of kind %d", e.Kind)
		case e.Kind == KindFunction && int(e.Index) >= m.functionCount():
			r.fail("export %q of function %d of %d", e.Name, e.Index, m.functionCount())
		case e.Kind == KindGlobal && int(e.Index) >= m.globalCount():
			r.fail("export %q of global %d of %d", e.Name, e.Index, m.globalCount())
		}
		m.Exports = append(m.Exports, e)
	}
}

func (m *Module) startSection(r *reader) {
	m.HasStart, m.start = true, r.u32()
	t, ok := m.Signature(m.start)
	if !ok || len(t.Params)+len(t.Results) > 0 {
		r.fail("start function %d of %d", m.start, m.functionCount())
	}
}

func (m *Module) code(r *reader) {
	n := r.count(1)
	if n != len(m.Functions) {
		r.fail("%d functions declared, %d defined", len(m.Functions), n)
	}
	for ; n > 0 && r.err == nil; n-- {
		body := r.sub(r.u32())
		m.bodies = append(m.bodies, span{body.b, body.base})
	}
}

// custom keeps function names and source lines. A damaged name section is ignored.
func (m *Module) custom(r *reader) error {
	section := r.name()
	if section == ".debug_line" && r.err == nil && len(r.b)-r.p <= maxLines {
		m.Lines = r.b[r.p:]
	}
	if section != "name" || r.err != nil || m.Names != nil {
		return r.err
	}
	const functionNames = 1
	for r.more() {
		id := r.u8()
		s := r.sub(r.u32())
		if id != functionNames {
			continue
		}
		names := map[uint32]string{}
		n := s.count(2)
		if n > maxFunctions+maxImports {
			return nil
		}
		for ; n > 0; n-- {
			index, name := s.u32(), s.name()
			if s.err != nil || !utf8.ValidString(name) {
				return nil
			}
			names[index] = name
		}
		m.Names = names
	}
	return nil
}
