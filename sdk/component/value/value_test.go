package value

import (
	"encoding/hex"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

// values are the lines of testdata/values.txt: how Python writes a value, and its bytes. A test of the SDK for Python reads them too.
func values(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		written, code, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		data, err := hex.DecodeString(code)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		found[written] = data
	}
	return found
}

func TestParse_ReadsWhatPythonWritesAndWritesTheSame(t *testing.T) {
	for written, data := range values(t) {
		v, err := Parse(data)
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := v.Append(nil); string(got) != string(data) {
			t.Errorf("%s: %x, want %x", written, got, data)
		}
		if again, err := Parse(v.Append(nil)); err != nil || !again.Equal(v) {
			t.Errorf("%s: %v, %v", written, again, err)
		}
	}
}

func TestValue_IsWhatItWasMadeOf(t *testing.T) {
	found := values(t)
	for written, v := range map[string]Value{
		"None": {}, "True": Bool(true), "-1": Int(-1), "9223372036854775807": Int(math.MaxInt64), "1.5": Float(1.5), `float("inf")`: Float(math.Inf(1)),
		`"héllo ✓"`: Text("héllo ✓"), `b"\x00\xff"`: Bytes([]byte{0, 255}), `(1, "a", (None,))`: Tuple(Int(1), Text("a"), Tuple(Value{})),
		"[1, [2, [3]]]":                        List(Int(1), List(Int(2), List(Int(3)))),
		`{"a": 1, 2: {"b": [True]}}`:           Dict(Text("a"), Int(1), Int(2), Dict(Text("b"), List(Bool(true)))),
		`numpy.array([[1, 2], [3, 4]], ">i2")`: Array(">i2", []int{2, 2}, []byte{0, 1, 0, 2, 0, 3, 0, 4}),
		`numpy.zeros((2, 0, 3), "|u1")`:        Array("|u1", []int{2, 0, 3}, nil),
	} {
		if got := v.Append(nil); string(got) != string(found[written]) {
			t.Errorf("%s: %x, want %x", written, got, found[written])
		}
	}
}

func TestValue_Reads(t *testing.T) {
	v, err := Parse(values(t)[`{"obs": numpy.ones((2, 2), "<f8"), "n": 3}`])
	if err != nil {
		t.Fatal(err)
	}
	n, _ := v.Get("n")
	obs, _ := v.Get("obs")
	if i, ok := n.Int(); i != 3 || !ok {
		t.Errorf("n is %v", n)
	}
	if f, ok := n.Float(); f != 3 || !ok {
		t.Errorf("n is %v", f)
	}
	if dtype, shape, data, ok := obs.Array(); dtype != "<f8" || len(shape) != 2 || len(data) != 32 || !ok {
		t.Errorf("obs is %v", obs)
	}
	if got, want := v.String(), `{"obs": array <f8[2 2] of 32 bytes, "n": 3}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, ok := v.Get("none"); ok || v.Kind() != KindDict || len(v.Items()) != 4 {
		t.Errorf("%v has %d items", v, len(v.Items()))
	}
	for _, wrong := range []Value{{}, Text("x"), List()} {
		_, a := wrong.Int()
		_, b := wrong.Bool()
		_, c := wrong.Bytes()
		_, _, _, d := wrong.Array()
		_, e := wrong.Large()
		_, f := wrong.Get("x")
		_, g := wrong.Float()
		if a || b || c || d || e || f || g {
			t.Errorf("%v has a value of another kind", wrong)
		}
	}
	large, _ := Parse(values(t)["-170141183460469231731687303715884105728"])
	if i, ok := large.Large(); !ok || i.String() != "-170141183460469231731687303715884105728" {
		t.Errorf("large is %v", large)
	}
}

func TestParse_RefusesOtherBytes(t *testing.T) {
	deep := strings.Repeat("[\x01\x00\x00\x00", 70) + "N"
	for what, data := range map[string]string{
		"nothing": "", "a byte of no kind": "x", "two values": "NN", "a cut number": "i\x01", "a count that lies": "[\xff\xff\xff\xff",
		"a text that is none": "s\x01\x00\x00\x00\xff", "too deep": deep, "a key without a value": "{\x01\x00\x00\x00N",
		"an array of objects": "a\x02\x00\x00\x00|O\x00", "a huge array": "a\x03\x00\x00\x00<f8\x01\xff\xff\xff\xff\xff\xff\xff\x7f",
		"a product that overflows": "a\x03\x00\x00\x00<f8\x02\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00",
		"an array that is cut":     "a\x03\x00\x00\x00<f8\x01\x01\x00\x00\x00\x00\x00\x00\x00",
	} {
		if v, err := Parse([]byte(data)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, %v", what, v, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, data := range values(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err != nil {
			return
		}
		again, err := Parse(v.Append(nil))
		if err != nil || !again.Equal(v) {
			t.Errorf("%x: %v, then %v, %v", data, v, again, err)
		}
	})
}
