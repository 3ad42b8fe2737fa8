package meter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Names of what Rewrite adds to a module. A module that has any of them is refused.
const (
	Reserved   = "__rl_"      // prefix of every added export
	FuelExport = "__rl_fuel"  // i32: the fuel left
	StartCall  = "__rl_start" // () -> (): the start function
	DataCall   = "__rl_data"  // () -> (): copies the data segments into memory

	YieldModule = "rl"    // import called when the fuel is below zero
	YieldName   = "yield" // () -> ()
)

// GlobalExport returns the name under which Result.Globals[i] is exported.
func GlobalExport(i int) string { return fmt.Sprintf("%sg%d", Reserved, i) }

// Result is a rewritten module.
type Result struct {
	Code []byte
	// Globals is the number of mutable globals, exported under GlobalExport(0) and so on.
	Globals int
	// Start and Data say whether the module exports StartCall and DataCall. They must be called in the order
	// data, start, before anything else, unless memory and globals come from an image.
	Start, Data bool
	// Features names the extensions of WebAssembly 1.0 that the code uses, sorted.
	Features []string
	// Moved maps the instructions of a module with DWARF lines to their new places, in ascending order. Traces of
	// such a module then have the offset of each frame's instruction, from the start of the code section on.
	Moved []Moved
	// State is empty if memory and the exported globals are all the state that an instance can change, else it
	// names the rest.
	State string
	// Outside describes the first active segment of elements that does not fit its table's initial size; empty if all fit. The
	// specification has such a module fail at its start; wazero leaves the segment out.
	Outside string
}

// Moved is an instruction: its offset in the rewritten code section and in the original one.
type Moved struct{ New, Old uint32 }

// ErrReserved is returned for a module that uses a name which Rewrite adds.
type ErrReserved struct{ Name string }

func (e ErrReserved) Error() string {
	return fmt.Sprintf("takes the name %s, which is reserved for the host", e.Name)
}

// rewriter writes one module.
type rewriter struct {
	m        *Module
	out      []byte
	yield    uint32   // index of the import
	fuel     uint32   // index of the global
	tableMin []uint32 // entries that each table begins with
	nothing  uint32   // index of the signature () -> ()
	plans    []plan   // by own function
	segs     []segment
	uses     map[string]bool // features
	// startNamed: an export, a global or a segment names the start function, so that code may refer to it.
	startNamed bool
	sum        totals
	result     Result
}

// Rewrite returns the metered module.
func (m *Module) Rewrite() (*Result, error) {
	if err := m.checkReserved(); err != nil {
		return nil, err
	}
	w := &rewriter{m: m, yield: uint32(m.importedFunctions), fuel: uint32(m.globalCount()), nothing: uint32(len(m.Types)),
		uses: map[string]bool{}}
	if err := w.survey(); err != nil {
		return nil, err
	}
	if err := w.planData(); err != nil {
		return nil, err
	}
	w.out = append(make([]byte, 0, m.size()*3/2), magic...)
	steps := []func() error{w.types, w.imports, w.functions, w.tables, w.memory, w.globals, w.exports, w.elements,
		w.dataCount, w.code, w.data, w.names, w.debug}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	w.result.Code = w.out
	w.result.Start = m.HasStart
	w.result.Features = slices.Sorted(maps.Keys(w.uses))
	return &w.result, nil
}

func (m *Module) size() int {
	n := len(magic)
	for _, s := range m.sections {
		n += len(s.b)
	}
	return n
}

func (m *Module) checkReserved() error {
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, Reserved) {
			return ErrReserved{e.Name}
		}
	}
	for _, i := range m.Imports {
		if i.Module == YieldModule && i.Name == YieldName {
			return ErrReserved{i.Module + "." + i.Name}
		}
	}
	return nil
}

// shift returns the new index of a function: the added import comes before the module's own functions.
func (w *rewriter) shift(function uint32) uint32 {
	if int(function) >= w.m.importedFunctions {
		return function + 1
	}
	return function
}

// emit appends a section.
func (w *rewriter) emit(id byte, body []byte) {
	w.out = append(appendU32(append(w.out, id), uint32(len(body))), body...)
}

// keep copies a section unchanged, if there is one.
func (w *rewriter) keep(id byte) {
	if w.m.present[id] {
		w.emit(id, w.m.sections[id].b)
	}
}

// extended returns the elements of a section's vector with more added to their number, and what to append to.
func (w *rewriter) extended(id byte, more int) []byte {
	r := w.m.sections[id].reader()
	n := uint32(0)
	if w.m.present[id] {
		n = r.u32()
	}
	return append(appendU32(nil, n+uint32(more)), r.b[r.p:]...)
}

func (w *rewriter) types() error {
	w.emit(sectionType, append(w.extended(sectionType, 1), 0x60, 0, 0))
	return nil
}

// imports adds rl.yield as the last import, so that imported functions keep their indexes.
func (w *rewriter) imports() error {
	b := w.extended(sectionImport, 1)
	if slices.ContainsFunc(w.m.Imports, func(i Import) bool { return i.To[0] != "" }) {
		var err error
		if b, err = w.redirected(); err != nil {
			return err
		}
	}
	b = append(appendName(appendName(b, YieldModule), YieldName), KindFunction)
	w.emit(sectionImport, appendU32(b, w.nothing))
	return nil
}

// redirected returns the imports, with room for one more in their number, where some have another name. All are functions.
func (w *rewriter) redirected() ([]byte, error) {
	b := appendU32(nil, uint32(len(w.m.Imports)+1))
	for _, i := range w.m.Imports {
		if i.Kind != KindFunction {
			return nil, fmt.Errorf("%s.%s is no function", i.Module, i.Name)
		}
		if i.To[0] != "" {
			i.Module, i.Name = i.To[0], i.To[1]
		}
		b = appendU32(append(appendName(appendName(b, i.Module), i.Name), KindFunction), i.Type)
	}
	return b, nil
}

func (w *rewriter) functions() error {
	if n := w.dataFunctions(); n > 0 {
		b := w.extended(sectionFunction, n)
		for range n {
			b = appendU32(b, w.nothing)
		}
		w.emit(sectionFunction, b)
		return nil
	}
	w.keep(sectionFunction)
	return nil
}

// tables gives every table an end, so that a guest cannot fill the host's memory with entries.
func (w *rewriter) tables() error {
	if !w.m.present[sectionTable] {
		return nil
	}
	r := w.m.sections[sectionTable].reader()
	n := r.u32()
	b := appendU32(nil, n)
	for ; n > 0; n-- {
		element, limits := r.tableType()
		top := uint32(maxTableEntries)
		if limits.HasMax && limits.Max >= limits.Min {
			top = min(top, limits.Max)
		}
		if limits.HasMax && limits.Max < limits.Min {
			top = limits.Max // not valid, and must stay so
		}
		b = appendU32(appendU32(append(b, element, 1), limits.Min), top)
		w.tableMin = append(w.tableMin, limits.Min)
	}
	w.emit(sectionTable, b)
	return r.err
}

func (w *rewriter) memory() error {
	w.keep(sectionMemory)
	return nil
}

// globals copies the module's globals and adds the fuel, which is empty at first.
func (w *rewriter) globals() error {
	b := appendU32(nil, uint32(len(w.m.globals)+1))
	for _, g := range w.m.globals {
		mutable := byte(0)
		if g.mutable {
			mutable = 1
		}
		b = append(b, g.valType, mutable)
		r := g.init.reader()
		if b = w.expression(r, b); r.err != nil {
			return r.err
		}
	}
	w.emit(sectionGlobal, append(b, typeI32, 1, opI32Const, 0, opEnd))
	return nil
}

func (w *rewriter) exports() error {
	var added []byte
	n := 0
	add := func(name string, kind byte, index uint32) {
		added = appendU32(append(appendName(added, name), kind), index)
		n++
	}
	add(FuelExport, KindGlobal, w.fuel)
	for k, g := range w.m.globals {
		if !g.mutable {
			continue
		}
		if g.valType < typeI32-3 || g.valType > typeI32 {
			w.state("a mutable global that holds a vector or a reference")
			continue
		}
		add(GlobalExport(w.result.Globals), KindGlobal, uint32(w.m.importedGlobals+k))
		w.result.Globals++
	}
	if w.m.HasStart {
		add(StartCall, KindFunction, w.shift(w.m.start))
	}
	if w.result.Data {
		add(DataCall, KindFunction, uint32(w.m.functionCount()+w.dataFunctions()))
	}
	b := appendU32(nil, uint32(len(w.m.Exports)+n))
	for _, e := range w.m.Exports {
		index := e.Index
		if e.Kind == KindFunction {
			w.startNamed = w.startNamed || index == w.m.start
			index = w.shift(index)
		}
		b = appendU32(append(appendName(b, e.Name), e.Kind), index)
	}
	w.emit(sectionExport, append(b, added...))
	return nil
}

// state notes state that a snapshot could not hold.
func (w *rewriter) state(what string) {
	if w.result.State == "" {
		w.result.State = what
	}
}

// expression copies a constant expression.
func (w *rewriter) expression(r *reader, b []byte) []byte {
	for r.err == nil {
		start := r.p
		in := w.m.next(r)
		switch {
		case r.err != nil:
		case in.op == opRefFunc || in.op == opCall:
			w.startNamed = w.startNamed || in.index == w.m.start
			b = appendU32(append(b, in.op), w.shift(in.index))
		default:
			b = append(b, r.b[start:r.p]...)
		}
		if in.op == opEnd {
			break
		}
	}
	return b
}

// names writes the names of functions, for the messages of traps.
func (w *rewriter) names() error {
	n := 0
	var list []byte
	for index := range uint32(w.m.functionCount()) {
		if name, ok := w.m.Names[index]; ok {
			list = appendName(appendU32(list, w.shift(index)), name)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	list = append(appendU32(nil, uint32(n)), list...)
	const functionNames = 1
	b := append(appendName(nil, "name"), functionNames)
	b = append(appendU32(b, uint32(len(list))), list...)
	w.emit(sectionCustom, b)
	return nil
}
