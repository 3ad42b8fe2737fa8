package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tile is one shape of the product's kernel: rows of A times panels of 16 columns of B.
type tile struct {
	isa
	rows, panels int

	k, a, a7, aCol, b, bRow, bPanel, bPanel3, c, c7, tiles reg.GPPhysical
	row                                                    strides
}

// gemm generates the product of a column of tiles:
//
//	C(i, j) = start + Σ_k A(i, k)·B(k, j)
//
// Each element is one chain of fused multiply-adds in the order of k, in any tile. The start is 0, the bias
// or C itself. A tile lives in registers; one k brings one row of B and a broadcast for every row of A.
func gemm(s isa, rows, panels int) {
	function(fmt.Sprintf("gemm%s_%dx%d", s.name, rows, panels), "gemmArgs")
	t := tile{isa: s, rows: rows, panels: panels,
		k: reg.RCX, a: reg.RAX, a7: reg.RBX, aCol: reg.R9, b: reg.R10, bRow: reg.R11, bPanel: reg.R12,
		c: reg.R13, c7: reg.R14, tiles: reg.R15, row: strides{reg.RDX, reg.RSI, reg.R8}}
	t.bPanel3 = t.a7 // tiles of four panels have few rows
	load("a c tiles bRow bPanel", t.a, t.c, t.tiles, t.bRow, t.bPanel)
	Label("tile")
	t.start()
	t.loop()
	t.store()
	// the next tile
	times(rows, t.row.one, t.b)
	ADDQ(t.b, t.c)
	MOVQ(field("aRow"), t.b)
	times(rows, t.b, t.b)
	ADDQ(t.b, t.a)
	DECQ(t.tiles)
	JNZ(LabelRef("tile"))
	finish()
}

// vecs is the number of registers that one row of the tile takes.
func (t *tile) vecs() int { return t.panels * 64 / t.bytes }

func (t *tile) acc(i, v int) reg.VecPhysical { return t.v[i*t.vecs()+v] }

// each calls visit for all elements of C, panel by panel; t.c and t.c7 end at the last panel.
func (t *tile) each(visit func(c Mem, acc reg.VecPhysical)) {
	perPanel := 64 / t.bytes
	for p := range t.panels {
		if p > 0 {
			ADDQ(field("cPanel"), t.c)
		}
		if t.rows > 7 {
			t.row.seven(t.c, t.c7)
		}
		for i := range t.rows {
			for v := range perPanel {
				visit(at(t.row.row(t.c, t.c7, i), v*t.bytes), t.acc(i, p*perPanel+v))
			}
		}
	}
}

// start fills the accumulators.
func (t *tile) start() {
	MOVQ(field("start"), t.k)
	CMPQ(t.k, Imm(1))
	JEQ(LabelRef("bias"))
	JGT(LabelRef("add"))
	for i := range t.rows * t.vecs() {
		t.clear(t.v[i])
	}
	JMP(LabelRef("started"))

	Label("bias")
	MOVQ(field("bias"), t.k)
	for v := range t.vecs() {
		VMOVUPS(Mem{Base: t.k, Disp: v * t.bytes}, t.acc(0, v))
	}
	for i := 1; i < t.rows; i++ {
		for v := range t.vecs() {
			VMOVAPS(t.acc(0, v), t.acc(i, v))
		}
	}
	JMP(LabelRef("started"))

	Label("add")
	t.row.load(field("cRow"))
	MOVQ(t.c, t.k)
	t.each(func(c Mem, acc reg.VecPhysical) { VMOVUPS(c, acc) })
	MOVQ(t.k, t.c)
	Label("started")
}

func (t *tile) loop() {
	MOVQ(field("aCol"), t.aCol)
	t.row.load(field("aRow"))
	if t.rows > 7 {
		t.row.seven(t.a, t.a7)
	}
	if t.panels == 4 {
		LEAQ(Mem{Base: t.bPanel, Index: t.bPanel, Scale: 2}, t.bPanel3)
	}
	runs := AllocLocal(8) // left of k, as no register is
	load("runs b", t.k, t.b)
	MOVQ(t.k, runs)
	MOVQ(t.a, t.c7) // the start of A, free until C is stored
	Label("run")
	load("k", t.k)
	Label("k")
	t.step()
	ADDQ(t.aCol, t.a)
	if t.rows > 7 {
		ADDQ(t.aCol, t.a7)
	}
	ADDQ(t.bRow, t.b)
	DECQ(t.k)
	JNZ(LabelRef("k"))
	ADDQ(field("aRun"), t.a)
	if t.rows > 7 {
		ADDQ(field("aRun"), t.a7)
	}
	DECQ(runs)
	JNZ(LabelRef("run"))
	MOVQ(t.c7, t.a)
}

// step does one k. A row of B is loaded once, or read from memory if it serves a single row.
func (t *tile) step() {
	free := t.v[t.rows*t.vecs():]
	bs := make([]Op, t.vecs())
	for v := range bs {
		m := t.bMem(v)
		if t.rows == 1 {
			bs[v] = m
			continue
		}
		VMOVUPS(m, free[v])
		bs[v] = free[v]
	}
	if t.rows > 1 {
		free = free[len(bs):]
	}
	for i := range t.rows {
		if t.wide() && len(bs) == 1 && t.rows > 1 { // a separate broadcast takes a third longer on Zen 4
			VFMADD231PS_BCST(t.row.row(t.a, t.a7, i), bs[0], t.acc(i, 0))
			continue
		}
		x := free[i%min(2, len(free))]
		VBROADCASTSS(t.row.row(t.a, t.a7, i), x)
		for v, b := range bs {
			VFMADD231PS(b, x, t.acc(i, v))
		}
	}
}

func (t *tile) bMem(v int) Mem {
	perPanel := 64 / t.bytes
	m := Mem{Base: t.b, Disp: v % perPanel * t.bytes}
	switch v / perPanel {
	case 1:
		m.Index, m.Scale = t.bPanel, 1
	case 2:
		m.Index, m.Scale = t.bPanel, 2
	case 3:
		m.Index, m.Scale = t.bPanel3, 1
	}
	return m
}

// store writes the tile as field end says.
func (t *tile) store() {
	t.row.load(field("cRow"))
	MOVQ(t.c, t.k)
	MOVQ(field("end"), t.b)
	CMPQ(t.b, Imm(1))
	JGT(LabelRef("derivative"))
	JEQ(LabelRef("relu"))
	t.each(func(c Mem, acc reg.VecPhysical) { VMOVUPS(acc, c) })
	JMP(LabelRef("stored"))

	zero := t.v[t.rows*t.vecs():][0]
	Label("relu")
	t.clear(zero)
	t.each(func(c Mem, acc reg.VecPhysical) {
		VMAXPS(acc, zero, acc)
		VMOVUPS(acc, c)
	})
	JMP(LabelRef("stored"))

	Label("derivative")
	CMPQ(t.b, Imm(2))
	JGT(LabelRef("tanh"))
	t.clear(zero)
	t.derive(func(acc, h reg.VecPhysical) {
		if t.wide() {
			VCMPPS(Imm(1), h, zero, reg.K2)
			VMOVAPS_Z(acc, reg.K2, acc)
			return
		}
		VCMPPS(Imm(1), h, zero, h)
		VANDPS(h, acc, acc)
	})
	JMP(LabelRef("stored"))

	Label("tanh")
	VBROADCASTSS(float(1), zero)
	t.derive(func(acc, h reg.VecPhysical) {
		VFNMADD213PS(zero, h, h)
		VMULPS(h, acc, acc)
	})
	Label("stored")
	MOVQ(t.k, t.c)
}

// derive stores each element after apply, which gets the element of H. It leaves the first free register alone.
func (t *tile) derive(apply func(acc, h reg.VecPhysical)) {
	MOVQ(field("h"), t.b)
	SUBQ(field("c"), t.b) // from C to H
	h := t.v[t.rows*t.vecs()+1:]
	i := 0
	t.each(func(c Mem, acc reg.VecPhysical) {
		// H has the place of C in another matrix: the same row from another base.
		base := t.a7
		if c.Base == t.c7 {
			base = t.aCol
		}
		if i%(t.rows*64/t.bytes) == 0 { // a panel begins
			LEAQ(Mem{Base: t.c, Index: t.b, Scale: 1}, t.a7)
			if t.rows > 7 {
				LEAQ(Mem{Base: t.c7, Index: t.b, Scale: 1}, t.aCol)
			}
		}
		x := h[i%len(h)]
		from := c
		from.Base = base
		VMOVUPS(from, x)
		apply(acc, x)
		VMOVUPS(acc, c)
		i++
	})
}
