// Package pictures shows pictures on terminals: as coloured half blocks, as sixels, or by kitty's protocol.
//
//	p := pictures.Painter{Form: pictures.Blocks}
//	screen.Write(p.Paint(nil, pictures.Picture{RGB: pixels, Width: 160, Height: 210}, pictures.Area{Columns: 80, Rows: 23}))
//
// It makes no pictures and asks terminals nothing.
package pictures
