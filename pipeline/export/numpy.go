package export

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
)

//go:embed rlhost_policy.py
var reader []byte

// Members of the archive that are no tensors.
const (
	readerMember  = "rlhost_policy.py"
	networkMember = "network.json.npy" // bytes
	aboutMember   = "about.json.npy"   // bytes
)

// encodeNumPy writes an archive of arrays, as numpy.savez does, with the module that computes them: Python imports modules
// from such archives.
func encodeNumPy(p *Policy) ([]byte, error) {
	network, err := json.Marshal(&p.Network)
	if err != nil {
		return nil, err
	}
	about, err := json.Marshal(p.About)
	if err != nil {
		return nil, err
	}
	members := map[string][]byte{
		readerMember:  reader,
		networkMember: npy("|u1", []int{len(network)}, network),
		aboutMember:   npy("|u1", []int{len(about)}, about),
	}
	for name, t := range p.tensors() {
		var data []byte
		for _, v := range t.Data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		members[name+".npy"] = npy("<f4", t.Shape, data)
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(members[name]); err != nil {
			return nil, err
		}
	}
	err = archive.Close()
	return out.Bytes(), err
}

// npy returns an array in version 1.0 of NumPy's format: magic, length of the head, head, data.
func npy(descr string, shape []int, data []byte) []byte {
	const magic, alignment = "\x93NUMPY\x01\x00", 64
	dims := ""
	for _, n := range shape {
		dims += strconv.Itoa(n) + ","
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	before := len(magic) + 2
	head += strings.Repeat(" ", alignment-1-(before+len(head))%alignment) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte(magic), uint16(len(head)))
	return append(append(b, head...), data...)
}

var npyHead = regexp.MustCompile(`^\{'descr': '(<f4|\|u1)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n$`)

// parseNPY returns the parts of an array that npy wrote.
func parseNPY(b []byte) (descr string, shape []int, data []byte, err error) {
	if len(b) < 10 || string(b[:8]) != "\x93NUMPY\x01\x00" || len(b) < 10+int(binary.LittleEndian.Uint16(b[8:])) {
		return "", nil, nil, errors.New("no array of NumPy's format 1.0")
	}
	end := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	parts := npyHead.FindStringSubmatch(string(b[10:end]))
	if parts == nil {
		return "", nil, nil, fmt.Errorf("the head of an array is %q", b[10:end])
	}
	for _, d := range strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(d)
		if err != nil {
			return "", nil, nil, err
		}
		shape = append(shape, n)
	}
	return parts[1], shape, b[end:], nil
}

func openNumPy(file []byte) (model, error) {
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	var network []byte
	tensors := map[string]component.Tensor{}
	for _, member := range archive.File {
		if member.Name == readerMember {
			continue
		}
		b, err := readMember(member)
		if err != nil {
			return nil, err
		}
		descr, shape, data, err := parseNPY(b)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", member.Name, err)
		case member.Name == networkMember:
			network = data
		case descr == "<f4":
			t := component.Tensor{Shape: shape}
			for ; len(data) >= 4; data = data[4:] {
				t.Data = append(t.Data, math.Float32frombits(binary.LittleEndian.Uint32(data)))
			}
			tensors[strings.TrimSuffix(member.Name, ".npy")] = t
		}
	}
	p, err := policyOf(network, tensors)
	if err != nil {
		return nil, err
	}
	return p.model(), nil
}

func readMember(member *zip.File) ([]byte, error) {
	r, err := member.Open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}
