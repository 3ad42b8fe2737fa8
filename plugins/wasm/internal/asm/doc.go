// Package asm puts small WebAssembly modules together, byte by byte, for tests that need guests which no
// compiler would write.
//
//	m := asm.New(1)
//	m.Func("rl_step", asm.I32s(2), asm.I32s(1), 0, asm.Loop, asm.Void, asm.Br(0), asm.End, asm.Const(0))
//	file := m.Bytes()
//
// It checks nothing: it exists to make wrong modules.
package asm
