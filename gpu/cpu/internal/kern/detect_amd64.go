package kern

import "golang.org/x/sys/cpu"

// detect asks the processor and, through it, whether the system saves the registers.
func detect() Set {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return Generic
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return AVX512
	}
	return AVX2
}
