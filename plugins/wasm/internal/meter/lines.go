package meter

import (
	"cmp"
	"path"
	"slices"
	"sort"
)

// SourceLines maps instructions to source lines. It is read from a module's DWARF, whose line tables are programs of a
// small machine; nothing that they say is used to reserve memory, and no name is kept at full length.
type SourceLines struct {
	rows  []lineRow // by ascending address
	files []string
}

// lineRow is where the code of a line begins: an offset in the code section. line is 0 where code without a line begins.
type lineRow struct{ address, file, line uint32 }

const (
	maxRows     = 1 << 20
	maxFiles    = 1 << 16
	maxFileName = 64
)

// ReadLines reads line tables, as Module.Lines has them, as far as they are not damaged. Versions 2 to 4 of DWARF are
// read, which compilers write for WebAssembly by default.
func ReadLines(table []byte) *SourceLines {
	l := &SourceLines{}
	r := &reader{b: table}
	for r.more() {
		unit := r.sub(r.fixed32())
		if version := unit.u16(); version >= 2 && version <= 4 {
			l.unit(unit, version)
		}
	}
	slices.SortStableFunc(l.rows, func(a, b lineRow) int { return cmp.Compare(a.address, b.address) })
	return l
}

// At returns the file's name without its folder, and the line; ok is false if not known.
func (l *SourceLines) At(address uint32) (file string, line int, ok bool) {
	k := sort.Search(len(l.rows), func(i int) bool { return l.rows[i].address > address }) - 1
	if k < 0 || l.rows[k].line == 0 || int(l.rows[k].file) >= len(l.files) {
		return "", 0, false
	}
	return l.files[l.rows[k].file], int(l.rows[k].line), true
}

// text reads characters up to a NUL.
func (r *reader) text() []byte {
	start := r.p
	for r.u8() != 0 {
	}
	if r.err != nil {
		return nil
	}
	return r.b[start : r.p-1]
}

// lineMachine runs the program of one unit.
type lineMachine struct {
	*reader
	lines     *SourceLines
	operands  []byte // how many each standard opcode has, from 1 on
	least     uint32 // length of an instruction
	base      int8   // of the lines that a special opcode can add
	lineRange byte
	firstFile uint32 // index of the unit's first file

	row  lineRow
	dead bool // the sequence is of code that the linker threw away
	open bool // a sequence has begun
}

// unit reads the head of a unit and runs its program.
func (l *SourceLines) unit(r *reader, version uint16) {
	size := r.fixed32()
	program := uint64(r.p) + uint64(size)
	m := &lineMachine{reader: r, lines: l, firstFile: uint32(len(l.files)), least: uint32(r.u8())}
	if version >= 4 {
		r.u8() // operations per instruction: 1
	}
	r.u8() // whether rows are statements at first
	m.base, m.lineRange = int8(r.u8()), r.u8()
	if first := r.u8(); first > 0 {
		m.operands = r.take(uint32(first) - 1)
	}
	for r.more() && len(r.text()) > 0 { // folders
	}
	for r.more() {
		name := r.text()
		if len(name) == 0 || len(l.files) == maxFiles {
			break
		}
		name = name[max(0, len(name)-maxFileName):]
		l.files = append(l.files, path.Base(string(name)))
		for range 3 { // folder, time, size
			r.u32()
		}
	}
	if r.err != nil || m.lineRange == 0 || program < uint64(r.p) || program > uint64(len(r.b)) {
		return
	}
	r.p = int(program)
	m.reset()
	for r.more() && len(l.rows) < maxRows {
		m.step()
	}
}

func (m *lineMachine) reset() { m.row, m.dead, m.open = lineRow{file: 1, line: 1}, false, false }

// emit adds the row.
func (m *lineMachine) emit(line uint32) {
	const thrownAway = 1<<32 - 2 // and the next; or 0
	if !m.open {
		m.open, m.dead = true, m.row.address == 0 || m.row.address >= thrownAway
	}
	if !m.dead && m.row.file > 0 {
		m.lines.rows = append(m.lines.rows, lineRow{m.row.address, m.firstFile + m.row.file - 1, line})
	}
}

// Opcodes.
const (
	lineCopy = iota + 1
	lineAdvance
	lineAdvanceLine
	lineFile
	lineColumn
	lineStatement
	lineBlock
	lineAdvanceConst
	lineAdvanceFixed
)

// step does one instruction of the program.
func (m *lineMachine) step() {
	op := m.u8()
	switch {
	case int(op) > len(m.operands):
		line := m.advance(op)
		m.row.line += line
		m.emit(m.row.line)
	case op == 0:
		m.extended()
	case op == lineCopy:
		m.emit(m.row.line)
	case op == lineAdvance:
		m.row.address += m.u32() * m.least
	case op == lineAdvanceLine:
		m.row.line += uint32(m.signed(32))
	case op == lineFile:
		m.row.file = m.u32()
	case op == lineAdvanceConst:
		m.advance(255)
	case op == lineAdvanceFixed:
		m.row.address += uint32(m.u16())
	default:
		for range m.operands[op-1] {
			m.signed(64)
		}
	}
}

// advance moves the address as a special opcode does, and returns by how much it moves the line.
func (m *lineMachine) advance(op byte) (line uint32) {
	n := op - byte(len(m.operands)) - 1
	m.row.address += uint32(n/m.lineRange) * m.least
	return uint32(int32(m.base) + int32(n%m.lineRange))
}

// extended does an instruction that begins with its length.
func (m *lineMachine) extended() {
	const end, setAddress = 1, 2
	in := m.sub(m.u32())
	switch in.u8() {
	case end:
		m.emit(0)
		m.reset()
	case setAddress:
		if address := in.fixed32(); in.err == nil {
			m.row.address = address
		}
	}
}
