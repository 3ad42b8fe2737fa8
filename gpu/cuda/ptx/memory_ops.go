package ptx

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// qualifiers removes an access's words for its order and reports whether it is strong: volatile, relaxed, acquire or
// release.
func (b *binder) qualifiers() (isStrong bool) {
	isStrong = b.oneOf("volatile", "relaxed", "acquire", "release", "acq_rel") != ""
	b.oneOf("cta", "gpu", "sys")
	return isStrong
}

// space removes the space of an access; without one it is generic.
func (b *binder) space() space {
	name := b.oneOf("global", "const", "shared", "local", "param")
	if name == "shared" && b.has("cta") {
		return shared
	}
	return spaces[name]
}

// address compiles an operand in brackets.
func (b *binder) address(o syntax.Operand, sp space) address {
	a := address{space: sp, row: -1, off: uint64(o.Off)}
	if o.Kind != syntax.Address {
		b.bad("an operand is not an address")
	}
	if o.Name == "" {
		return a
	}
	if t, isRegister := b.text.Register(o.Name); isRegister {
		if t.Bits < 32 || t.Kind == 'f' {
			b.bad("register %s is no address", o.Name)
		}
		a.row, _ = b.row(o.Name)
		a.wide = t.Bits == 64
		return a
	}
	s := b.symbol(o.Name)
	switch sp {
	case s.space:
		a.off += s.offset
	case generic:
		a.off += s.offset + window(s.space)
	default:
		b.bad("%s is in another space", o.Name)
	}
	return a
}

// transfer compiles what ld and st have in common: the operands are an address and a register or a vector.
func (b *binder) transfer(address, value syntax.Operand) *transfer {
	t := b.dtype()
	if t.Kind == 'p' {
		b.bad("not for this type")
	}
	x := &transfer{line: b.Line, size: t.Bytes(), dtype: t}
	x.readOnly = b.has("nc")
	vector := b.oneOf("v2", "v4")
	sp := b.space()
	x.strong = b.qualifiers()
	x.at = b.address(address, sp)
	list := []syntax.Operand{value}
	if vector != "" {
		list = value.List
	}
	if want := map[string]int{"": 1, "v2": 2, "v4": 4}[vector]; len(list) != want || x.size*want > 16 {
		b.bad("a vector of another length, or of more than 16 bytes")
	}
	for _, o := range list {
		x.elements = append(x.elements, b.slot(o, t))
	}
	return x
}

func compileLoad(b *binder) exec {
	b.count(2)
	t := b.transfer(b.Args[1], b.Args[0])
	for _, o := range append(b.Args[0].List, b.Args[0]) {
		if o.Kind != syntax.Register && o.Kind != syntax.Vector {
			b.bad("a load into what is no register")
		}
	}
	switch {
	case t.at.space == param:
		return t.loadParam
	case t.at.space == shared && t.words():
		return t.loadShared
	case t.at.space == global && t.at.wide && t.words():
		return t.loadGlobal
	}
	return t.load
}

func compileStore(b *binder) exec {
	b.count(2)
	t := b.transfer(b.Args[0], b.Args[1])
	if t.readOnly || slices.ContainsFunc(t.elements, func(s slot) bool { return s.row < 0 }) {
		b.bad("a store that cannot be")
	}
	switch {
	case t.at.space == shared && t.words():
		return t.storeShared
	case t.at.space == global && t.at.wide && t.words():
		return t.storeGlobal
	}
	return t.store
}

// compileFence compiles membar and fence.
func compileFence(b *binder) exec {
	b.count(0)
	b.oneOf("sc", "acq_rel")
	switch b.oneOf("cta", "gl", "gpu", "sys") {
	case "cta":
		return nil
	case "gl", "gpu":
		return func(w *warp, m uint32) { w.cta.fences.fence(w, m, device) }
	case "sys":
		return func(w *warp, m uint32) { w.cta.fences.fence(w, m, system) }
	}
	b.bad("it has no scope that is run")
	return nil
}
