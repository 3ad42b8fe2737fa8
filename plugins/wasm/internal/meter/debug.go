package meter

import "encoding/binary"

// maxLines bounds the source lines that are looked at, in bytes.
const maxLines = 16 << 20

// maxMoved bounds the instructions that are followed. A larger module's are not.
const maxMoved = 2 << 20

// moved notes where the instructions of a function went: the body was at old, its instructions begin at new.
func (w *rewriter) moved(moved []Moved, new, old int) {
	for _, m := range moved {
		w.result.Moved = append(w.result.Moved, Moved{m.New + uint32(new), m.Old + uint32(old)})
	}
}

// debug writes DWARF that has one line for all code. The module's own describes code that no longer exists; this one
// makes the engine report the offset of each frame, which leads back to it.
func (w *rewriter) debug() error {
	if len(w.result.Moved) == 0 {
		return nil
	}
	end := w.result.Moved[len(w.result.Moved)-1].New + 1<<10
	for _, s := range []struct {
		name string
		body []byte
	}{{".debug_abbrev", debugAbbrev()}, {".debug_info", debugInfo(end)}, {".debug_line", debugLine(end)}, {".debug_str", []byte{0}}} {
		w.emit(sectionCustom, append(appendName(nil, s.name), s.body...))
	}
	return nil
}

// Numbers of DWARF 4.
const (
	dwarfVersion     = 4
	dwarfUnit        = 0x11 // DW_TAG_compile_unit
	dwarfLineTable   = 0x10 // DW_AT_stmt_list
	dwarfLow         = 0x11 // DW_AT_low_pc
	dwarfHigh        = 0x12 // DW_AT_high_pc
	dwarfAddress     = 0x01 // DW_FORM_addr
	dwarfData4       = 0x06 // DW_FORM_data4
	dwarfOffset      = 0x17 // DW_FORM_sec_offset
	dwarfFirst       = 1    // address where code begins; 0 means code that the linker dropped
	dwarfSpecial     = 13   // first opcode without operands
	dwarfEnd         = 1    // DW_LNE_end_sequence
	dwarfSetAddress  = 2    // DW_LNE_set_address
	dwarfCopy        = 1    // DW_LNS_copy
	dwarfAdvance     = 2    // DW_LNS_advance_pc
	dwarfAddressSize = 4
)

func debugAbbrev() []byte {
	return []byte{1, dwarfUnit, 0, dwarfLineTable, dwarfOffset, dwarfLow, dwarfAddress, dwarfHigh, dwarfData4, 0, 0, 0}
}

func debugInfo(end uint32) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint16(nil, dwarfVersion), 0)
	b = append(b, dwarfAddressSize, 1)
	for _, v := range []uint32{0, dwarfFirst, end} {
		b = le.AppendUint32(b, v)
	}
	return withLength(b)
}

// debugLine has one file and one line.
func debugLine(end uint32) []byte {
	le := binary.LittleEndian
	head := []byte{1, 1, 1, 0xfb, 14, dwarfSpecial, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1} // the usual numbers of operands
	head = append(append(head, 0), "code\x00\x00\x00\x00\x00"...)
	program := le.AppendUint32([]byte{0, 1 + dwarfAddressSize, dwarfSetAddress}, dwarfFirst)
	program = appendU32(append(program, dwarfCopy, dwarfAdvance), end)
	program = append(program, 0, 1, dwarfEnd)
	b := le.AppendUint16(nil, dwarfVersion)
	b = append(withLengthOf(b, head), program...)
	return withLength(b)
}

func withLength(b []byte) []byte { return withLengthOf(nil, b) }

// withLengthOf appends body, after its length in four bytes.
func withLengthOf(b, body []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...)
}
