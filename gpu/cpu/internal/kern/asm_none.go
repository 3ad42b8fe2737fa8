//go:build !amd64

package kern

func detect() Set { return Generic }

// Without assembly there is only the generic set, which Set's methods serve themselves.
const noAssembly = "kern: no assembly for this machine"

func (s Set) gemm(*Gemm)                   { panic(noAssembly) }
func (s Set) head(*Head)                   { panic(noAssembly) }
func (s Set) sample(*Sample)               { panic(noAssembly) }
func (s Set) loss(*Loss)                   { panic(noAssembly) }
func (l *Loss) surrogatesAsm()             { panic(noAssembly) }
func (c *Choice) weighAsm()                { panic(noAssembly) }
func (c *Choice) descendAsm()              { panic(noAssembly) }
func (n *Normal) weighAsm()                { panic(noAssembly) }
func (n *Normal) descendAsm()              { panic(noAssembly) }
func (n *Norm) asm(Set)                    { panic(noAssembly) }
func (c *Cell) asm(Set, int)               { panic(noAssembly) }
func (s Set) adam(*Adam)                   { panic(noAssembly) }
func (s Set) columnSums(*ColumnSums)       { panic(noAssembly) }
func (s Set) transpose(*Transpose)         { panic(noAssembly) }
func (s Set) widen(*Widen)                 { panic(noAssembly) }
func (s Set) pool(*Pool)                   { panic(noAssembly) }
func (t *TilesIn) asm(Set)                 { panic(noAssembly) }
func (t *TilesOut) asm(Set)                { panic(noAssembly) }
func (s Set) sumSquares([]float32) float32 { panic(noAssembly) }
