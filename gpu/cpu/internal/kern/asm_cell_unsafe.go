//go:build amd64

package kern

// asm runs the kernel of a cell with so many gates, chosen by the set and the direction.
func (c *Cell) asm(s Set, gates int) {
	next := func(row int) int { return 4 * (row - c.N) }
	args := cellArgs{bytes: 4 * c.N, xNext: next(c.XRow), sNext: next(c.SRow), hNext: next(c.HRow), outNext: next(c.ORow),
		dNext: next(c.ORow), dhNext: next(c.DHRow)}
	for r := 0; r < c.Rows; r += args.rows {
		args.rows = min(c.Rows-r, max(1, elemsPerCall/(gates*c.N)))
		args.x, args.s, args.h = at(c.X, r*c.XRow), at(c.S, r*c.SRow), at(c.H, r*c.HRow)
		if c.D == nil {
			args.out = at(c.Out, r*c.ORow)
		} else {
			args.d, args.dh = at(c.D, r*c.ORow), at(c.DH, r*c.DHRow)
		}
		args.run(s == AVX512, gates == 3, c.D != nil)
	}
}

func (a *cellArgs) run(wide, gru, back bool) {
	switch {
	case gru && back && wide:
		gruBackAVX512(a)
	case gru && back:
		gruBackAVX2(a)
	case gru && wide:
		gruAVX512(a)
	case gru:
		gruAVX2(a)
	case back && wide:
		lstmBackAVX512(a)
	case back:
		lstmBackAVX2(a)
	case wide:
		lstmAVX512(a)
	default:
		lstmAVX2(a)
	}
}
