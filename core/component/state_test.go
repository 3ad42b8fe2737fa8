package component

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func someState() State {
	return State{
		Meta: map[string]any{"numbers": 7},
		Tensors: map[string]Tensor{
			"actor.0.weight": {Shape: []int{2, 3}, Data: []float32{1, -2, 3, 0.5, float32(math.Inf(1)), 6}},
			"log_std":        {Shape: []int{}, Data: []float32{-0.5}},
			"none":           {Shape: []int{0, 4}, Data: []float32{}},
		},
		Blobs: map[string][]byte{"split0": {1, 2, 3}, "label": {}},
	}
}

func TestState_ComesBackAsItWas(t *testing.T) {
	want := someState()
	b, err := EncodeState(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.RawMeta) != `{"numbers":7}` {
		t.Errorf("meta %s", got.RawMeta)
	}
	if !reflect.DeepEqual(got.Tensors, want.Tensors) || !reflect.DeepEqual(got.Blobs, want.Blobs) {
		t.Errorf("got %v and %v, want %v and %v", got.Tensors, got.Blobs, want.Tensors, want.Blobs)
	}
	again, err := EncodeState(got)
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("encoded again it differs: %v", err)
	}
	var meta struct{ Numbers int }
	if err := got.Decode(&meta); err != nil || meta.Numbers != 7 {
		t.Errorf("Decode = %v, %v", meta, err)
	}
}

func TestState_OfAnotherFormatIsOneBlob(t *testing.T) {
	for _, want := range []string{"", "RLSTATE", "whatever a component writes"} {
		s, err := DecodeState([]byte(want))
		if err != nil || string(s.Blobs[OpaqueBlob]) != want {
			t.Errorf("DecodeState(%q) = %v, %v", want, s, err)
		}
		b, err := EncodeState(s)
		if err != nil || string(b) != want {
			t.Errorf("EncodeState = %q, %v, want %q", b, err, want)
		}
	}
}

func TestEncodeState_RefusesTensorsOfAnotherShape(t *testing.T) {
	for _, shape := range [][]int{{3}, {-1}, {1 << 40, 1 << 40}} {
		_, err := EncodeState(State{Tensors: map[string]Tensor{"w": {Shape: shape, Data: make([]float32, 2)}}})
		if err == nil || !strings.Contains(err.Error(), `tensor "w"`) {
			t.Errorf("shape %v: %v", shape, err)
		}
	}
}

func encoded(head string, rest ...byte) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(stateMagic), uint64(len(head)))
	return append(append(b, head...), rest...)
}

func TestDecodeState_RefusesInvalidStates(t *testing.T) {
	long := binary.LittleEndian.AppendUint64([]byte(stateMagic), math.MaxUint64)
	for name, b := range map[string][]byte{
		"magic alone":              []byte(stateMagic),
		"a head beyond the end":    long,
		"no JSON":                  encoded("{"),
		"a tensor beyond the end":  encoded(`{"tensors":[{"name":"w","shape":[2]}]}`, 0, 0, 0, 0),
		"a negative shape":         encoded(`{"tensors":[{"name":"w","shape":[-2]}]}`),
		"a shape that overflows":   encoded(`{"tensors":[{"name":"w","shape":[4294967296,4294967296]}]}`),
		"the same tensor twice":    encoded(`{"tensors":[{"name":"w","shape":[0]},{"name":"w","shape":[0]}]}`),
		"a blob beyond the end":    encoded(`{"blobs":[{"name":"b","bytes":2}]}`, 0),
		"a blob of less than none": encoded(`{"blobs":[{"name":"b","bytes":-1}]}`),
		"the same blob twice":      encoded(`{"blobs":[{"name":"b"},{"name":"b"}]}`),
		"something behind":         encoded(`{}`, 0),
	} {
		if s, err := DecodeState(b); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v, %v, want ErrState", name, s, err)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	b, err := EncodeState(someState())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(encoded(`{"meta":{"a":[1]},"blobs":[{"name":"b","bytes":1}]}`, 9))
	f.Add([]byte("opaque"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		again, err := EncodeState(s)
		if err != nil {
			t.Fatalf("EncodeState of what DecodeState took: %v", err)
		}
		if s2, err := DecodeState(again); err != nil || len(s2.Tensors) != len(s.Tensors) || len(s2.Blobs) != len(s.Blobs) {
			t.Fatalf("it does not come back: %v, %v", s2, err)
		}
	})
}
