package runs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// decodeHead splits a safetensors file into its entries, its metadata and the bytes that the entries point into.
func decodeHead(b []byte) (entries map[string]tensorEntry, metadata map[string]string, data []byte, err error) {
	if len(b) < 8 {
		return nil, nil, nil, fmt.Errorf("it has %d bytes, a head needs 8", len(b))
	}
	size := binary.LittleEndian.Uint64(b)
	rest := b[8:]
	if size > maxTensorHeader || size > uint64(len(rest)) {
		return nil, nil, nil, fmt.Errorf("its head should have %d bytes, %d follow and %d are the limit",
			size, len(rest), maxTensorHeader)
	}
	head, data := rest[:size], rest[size:]
	if size == 0 || head[0] != '{' {
		return nil, nil, nil, errors.New("its head does not start with {")
	}
	entries, metadata, err = decodeObject(head)
	return entries, metadata, data, err
}

// decodeObject reads the head member by member, because encoding/json would hide a name that comes twice.
func decodeObject(head []byte) (map[string]tensorEntry, map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(head))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	entries := make(map[string]tensorEntry)
	var metadata map[string]string
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		name, _ := token.(string) // a key is always a string
		if _, again := entries[name]; again || name == "__metadata__" && metadata != nil {
			return nil, nil, fmt.Errorf("the name %q comes twice", name)
		}
		if name == "__metadata__" {
			metadata = map[string]string{}
			if err := d.Decode(&metadata); err != nil {
				return nil, nil, fmt.Errorf("metadata: %w", err)
			}
			continue
		}
		entry, err := decodeEntry(d)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		entries[name] = entry
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("something follows the object in its head")
	}
	return entries, metadata, nil
}

func decodeEntry(d *json.Decoder) (tensorEntry, error) {
	var raw struct {
		DType   *string   `json:"dtype"`
		Shape   *[]uint64 `json:"shape"`
		Offsets *[]uint64 `json:"data_offsets"`
	}
	if err := d.Decode(&raw); err != nil {
		return tensorEntry{}, err
	}
	if raw.DType == nil || raw.Shape == nil || raw.Offsets == nil || len(*raw.Offsets) != 2 {
		return tensorEntry{}, errors.New("want dtype, shape and two data_offsets")
	}
	if len(*raw.Shape) > maxRank {
		return tensorEntry{}, fmt.Errorf("it has %d dimensions, at most %d", len(*raw.Shape), maxRank)
	}
	return tensorEntry{*raw.DType, *raw.Shape, [2]uint64(*raw.Offsets)}, nil
}

// checkEntries checks that every tensor is as long as its shape says, and that together they fill the data
// without a hole or an overlap.
func checkEntries(entries map[string]tensorEntry, size uint64) error {
	names := sortedNames(entries)
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	})
	end := uint64(0)
	for _, name := range names {
		e := entries[name]
		if e.Offsets[0] != end || e.Offsets[1] < end || e.Offsets[1] > size {
			return fmt.Errorf("tensor %q is at %d to %d, want it to start at %d and to end within %d",
				name, e.Offsets[0], e.Offsets[1], end, size)
		}
		want, err := entryBytes(e)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if got := e.Offsets[1] - e.Offsets[0]; got != want {
			return fmt.Errorf("tensor %q has %d bytes, its shape %v of %s says %d", name, got, e.Shape, e.DType, want)
		}
		end = e.Offsets[1]
	}
	if end != size {
		return fmt.Errorf("its tensors end at %d, its data at %d", end, size)
	}
	return nil
}

// entryBytes returns the size that shape and dtype give.
func entryBytes(e tensorEntry) (uint64, error) {
	n, ok := dtypeBytes[e.DType]
	if !ok {
		return 0, fmt.Errorf("unknown dtype %q", e.DType)
	}
	for _, dim := range e.Shape {
		if dim > math.MaxInt64 || dim > 0 && n > math.MaxInt64/dim {
			return 0, fmt.Errorf("the shape %v is too large", e.Shape)
		}
		n *= dim
	}
	return n, nil
}
