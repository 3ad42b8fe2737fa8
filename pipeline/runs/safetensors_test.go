package runs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
)

// golden has the content of testdata/golden.safetensors, which the safetensors package of PyPI wrote.
func golden() (map[string]component.Tensor, map[string]string) {
	weight := make([]float32, 12)
	for i := range weight {
		weight[i] = float32(i) / 8
	}
	return map[string]component.Tensor{
		"actor.0.weight": {Shape: []int{4, 3}, Data: weight},
		"actor.0.bias":   {Shape: []int{3}, Data: []float32{-1.5, 0, 3.25}},
		"scalar":         {Shape: []int{}, Data: []float32{7}},
		"empty":          {Shape: []int{0, 5}, Data: []float32{}},
	}, map[string]string{"made_by": "safetensors"}
}

func TestFileOfPythonIsReadAndWrittenByteForByte(t *testing.T) {
	file, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	want, wantMetadata := golden()
	got, metadata, err := DecodeTensors(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || !maps.Equal(metadata, wantMetadata) {
		t.Errorf("read %v with %v, want %v with %v", got, metadata, want, wantMetadata)
	}
	written, err := EncodeTensors(want, wantMetadata)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, file) {
		t.Errorf("wrote %q, Python wrote %q", written, file)
	}
}

func TestTensorsOfOtherTypesAreRefusedByName(t *testing.T) {
	file, err := os.ReadFile("testdata/mixed.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = DecodeTensors(file)
	if !errors.Is(err, ErrTensors) || !strings.Contains(err.Error(), `"steps" has elements of type "I64", want F32`) {
		t.Errorf("DecodeTensors of an int64 tensor: %v", err)
	}
}

// TestPythonReadsTheFiles runs where the project's virtual environment has safetensors.
func TestPythonReadsTheFiles(t *testing.T) {
	python := filepath.Join("..", "..", ".venv", "bin", "python")
	if exec.Command(python, "-c", "import safetensors, numpy").Run() != nil {
		t.Skipf("%s with safetensors and numpy is not there; the golden file stands in for it", python)
	}
	tensors, _ := golden()
	b, err := EncodeTensors(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ours.safetensors")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "testdata/golden.py", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "actor.0.bias float32 [3] 1.75\nactor.0.weight float32 [4, 3] 8.25\n" +
		"empty float32 [0, 5] 0.0\nscalar float32 [] 7.0\n"
	if string(out) != want {
		t.Errorf("Python read\n%swant\n%s", out, want)
	}
}

func TestFloatsKeepEveryBit(t *testing.T) {
	data := []float32{0, float32(math.Copysign(0, -1)), math.MaxFloat32, math.SmallestNonzeroFloat32,
		float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0x7fc12345)}
	b, err := EncodeTensors(map[string]component.Tensor{"x": {Shape: []int{7}, Data: data}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := DecodeTensors(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range data {
		if got := got["x"].Data[i]; math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("element %d has bits %x, want %x", i, math.Float32bits(got), math.Float32bits(want))
		}
	}
}

// file makes a safetensors file of a head and data, with the head's true length.
func file(head string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(b, head...), make([]byte, data)...)
}

func TestForbiddenFormsAreRefused(t *testing.T) {
	huge := file("{}", 0)
	binary.LittleEndian.PutUint64(huge, math.MaxUint64-4)
	for what, b := range map[string][]byte{
		"nothing":                nil,
		"half a length":          {1, 0, 0},
		"empty head":             file("", 0),
		"head beyond the end":    huge,
		"head that is no object": file(`[1, 2]  `, 0),
		"head cut off":           file(`{"a":`, 0),
		"head with a tail":       file(`{} {}`, 0),
		"array in the head":      file(`{"a":[]}`, 0),
		"no shape":               file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4),
		"one offset":             file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}`, 4),
		"three offsets":          file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}`, 4),
		"negative shape":         file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4),
		"unknown type":           file(`{"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}}`, 4),
		"a million dimensions":   file(`{"a":{"dtype":"F32","shape":[`+strings.Repeat("1,", 1<<20)+`1],"data_offsets":[0,4]}}`, 4),
		"wrong size":             file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
		"beyond the data":        file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4),
		"backwards":              file(`{"a":{"dtype":"F32","shape":[],"data_offsets":[4,0]}}`, 4),
		"size of overflow":       file(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0),
		"dimension of overflow":  file(`{"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}}`, 0),
		"hole":                   file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"data without a tensor":  file(`{}`, 1),
		"overlap": file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
			`"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"name twice": file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},`+
			`"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"metadata of numbers": file(`{"__metadata__":{"a":1}}`, 0),
	} {
		_, _, err := DecodeTensors(b)
		if !errors.Is(err, ErrTensors) {
			t.Errorf("%s: error %v, want ErrTensors", what, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", what, len(err.Error()))
		}
	}
}

func TestHeadOverTheLimitIsNotRead(t *testing.T) {
	b := file("{"+strings.Repeat(" ", maxTensorHeader)+"}", 0)
	if _, _, err := DecodeTensors(b); !errors.Is(err, ErrTensors) {
		t.Errorf("error %v, want ErrTensors", err)
	}
}

func FuzzSafetensors(f *testing.F) {
	for _, name := range []string{"golden", "mixed"} {
		b, err := os.ReadFile("testdata/" + name + ".safetensors")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, metadata, err := DecodeTensors(b)
		if err != nil {
			if !errors.Is(err, ErrTensors) {
				t.Errorf("error %v is not an ErrTensors", err)
			}
			return
		}
		// Decoded tensors can be encoded again, and decode to the same.
		written, err := EncodeTensors(tensors, metadata)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		again, _, err := DecodeTensors(written)
		if err != nil {
			t.Fatalf("written but not read: %v", err)
		}
		rewritten, err := EncodeTensors(again, metadata)
		if err != nil || !bytes.Equal(rewritten, written) {
			t.Errorf("written again it differs (%v): %q, %q", err, rewritten, written)
		}
	})
}
