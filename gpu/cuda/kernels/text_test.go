package kernels

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The committed PTX is made from the committed sources; make test-kernels makes it again.
func TestPTX_IsMadeFromTheSources(t *testing.T) {
	headers, err := filepath.Glob("*.cuh")
	if err != nil || len(headers) == 0 {
		t.Fatal(headers, err)
	}
	sources, err := filepath.Glob("*.cu")
	if err != nil || len(sources) != len(Modules()) {
		t.Errorf("sources %v of modules %v: %v", sources, Modules(), err)
	}
	slices.Sort(headers)
	for _, name := range Modules() {
		sum := sha256.New()
		for _, file := range append(slices.Clone(headers), name+".cu") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		want := fmt.Sprintf("// Made from %s.cu by nvcc %s; DO NOT EDIT.\n// sources sha256:%x\n\n.version %s\n.target sm_%d\n", name, Compiler, sum.Sum(nil), Version, Capability)
		if text := PTX(name); !bytes.HasPrefix(text, []byte(want)) {
			t.Errorf("%s.ptx begins with\n%s\nwant\n%s\nrun: make kernels", name, text[:min(len(text), len(want))], want)
		}
	}
}

// Instructions that round otherwise than the processor, or in an unknown order, have no place in any kernel.
func TestPTX_HasNoApproximations(t *testing.T) {
	for _, name := range Modules() {
		for i, line := range strings.Split(string(PTX(name)), "\n") {
			for _, word := range []string{".approx", ".ftz", "mad.f32", "mad.rn.f32", "atom.global.add.f", "red.global.add.f", "div.full"} {
				if strings.Contains(line, word) {
					t.Errorf("%s.ptx:%d: %s", name, i+1, line)
				}
			}
		}
	}
}
