package ppo

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi/native"
)

// errCall is wrapped by errors of bytes that are no call or no reply.
var errCall = errors.New("no message between learners")

// operation is what a call asks a learner on another host to do.
type operation string

// Operations: opOpen makes the engine, opSum and opMissed answer its sum, the others are an Engine's methods.
const (
	opOpen    operation = "open"
	opSit     operation = "sit"
	opBegin   operation = "begin"
	opTarget  operation = "target"
	opEpoch   operation = "epoch"
	opStep    operation = "step"
	opSum     operation = "sum"
	opMissed  operation = "missed"
	opFinish  operation = "finish"
	opRescale operation = "rescale"
)

// farCall is a call to a learner on another host. Long values follow as blobs, in the order in which the operation's code has them.
type farCall struct {
	Op operation `json:"op"`

	Seat  int `json:"seat,omitempty"` // of opOpen and opSit
	Seats int `json:"seats,omitempty"`

	Network      *policy.Network `json:"network,omitempty"`
	Config       *Config         `json:"config,omitempty"`
	Backend      string          `json:"backend,omitempty"`
	Policy       string          `json:"policy,omitempty"`
	AdamSteps    uint64          `json:"adam_steps,omitempty"`
	LearningRate float32         `json:"learning_rate,omitempty"`

	Rates      Rates             `json:"rates,omitzero"`
	Unit       Unit              `json:"unit,omitzero"`
	Schema     *native.Schema    `json:"schema,omitempty"`
	Parts      []trajectory.Part `json:"parts,omitempty"`
	Seed       uint64            `json:"seed,omitempty"`
	Index      uint64            `json:"index,omitempty"`
	BurnInRows int               `json:"burn_in_rows,omitempty"`

	Lo   int   `json:"lo,omitempty"`
	Ends []int `json:"ends,omitempty"`

	Head  Head    `json:"head,omitzero"`
	Scale float64 `json:"scale,omitempty"`
	Shift float64 `json:"shift,omitempty"`

	Numbers int `json:"numbers,omitempty"` // of opSum: of each seat

	Why string `json:"why,omitempty"` // of opMissed
	Far bool   `json:"far,omitempty"` // of opMissed: for the loss of a host

	Blobs []int `json:"blobs,omitempty"` // their lengths
}

// answer is what a learner on another host replies.
type answer struct {
	Summing  bool   `json:"summing,omitempty"` // it waits for a sum of what follows: so many numbers, and a vector
	Numbers  int    `json:"numbers,omitempty"`
	Error    string `json:"error,omitempty"`
	Kernels  string `json:"kernels,omitempty"` // of opOpen
	Gathered uint64 `json:"gathered,omitempty"`
	Hash     uint64 `json:"hash,omitempty"` // of the parameters, of opFinish
}

// pack appends a head as JSON, after its length, and what follows it.
func pack[T any](head *T, blobs ...[]byte) []byte {
	text, err := json.Marshal(head)
	if err != nil {
		text = []byte("{}") // a number that is none: the other side refuses it
	}
	size := 4 + len(text)
	for _, b := range blobs {
		size += len(b)
	}
	to := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(text)))
	to = append(to, text...)
	for _, b := range blobs {
		to = append(to, b...)
	}
	return to
}

// unpack is the inverse of pack; rest is everything behind the head.
func unpack[T any](data []byte, head *T) (rest []byte, err error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, errCall
	}
	n := int(binary.LittleEndian.Uint32(data))
	if err := json.Unmarshal(data[4:4+n], head); err != nil {
		return nil, fmt.Errorf("%w: %w", errCall, err)
	}
	return data[4+n:], nil
}

// packCall is pack with the lengths of the blobs.
func packCall(c farCall, blobs ...[]byte) []byte {
	for _, b := range blobs {
		c.Blobs = append(c.Blobs, len(b))
	}
	return pack(&c, blobs...)
}

// unpackCall returns a call and its blobs.
func unpackCall(data []byte) (c farCall, blobs [][]byte, err error) {
	rest, err := unpack(data, &c)
	if err != nil {
		return c, nil, err
	}
	for _, n := range c.Blobs {
		if n < 0 || n > len(rest) {
			return c, nil, errCall
		}
		blobs, rest = append(blobs, rest[:n]), rest[n:]
	}
	if len(rest) > 0 {
		return c, nil, errCall
	}
	return c, blobs, nil
}

func floatsTo(to []byte, x []float32) []byte {
	for _, f := range x {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(f))
	}
	return to
}

func floatsOf(from []byte, x []float32) ([]float32, error) {
	if len(from)%4 != 0 {
		return nil, errCall
	}
	x = x[:0]
	for i := 0; i < len(from); i += 4 {
		x = append(x, math.Float32frombits(binary.LittleEndian.Uint32(from[i:])))
	}
	return x, nil
}

func numbersTo(to []byte, x []float64) []byte {
	for _, f := range x {
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(f))
	}
	return to
}

// numbersOf takes the first n numbers.
func numbersOf(from []byte, n int, x []float64) (numbers []float64, rest []byte, err error) {
	if n < 0 || n > len(from)/8 {
		return nil, nil, errCall
	}
	x = x[:0]
	for range n {
		x, from = append(x, math.Float64frombits(binary.LittleEndian.Uint64(from))), from[8:]
	}
	return x, from, nil
}

func rowsTo(to []byte, rows []uint32) []byte {
	for _, r := range rows {
		to = binary.LittleEndian.AppendUint32(to, r)
	}
	return to
}

func rowsOf(from []byte) ([]uint32, error) {
	if len(from)%4 != 0 {
		return nil, errCall
	}
	rows := make([]uint32, 0, len(from)/4)
	for i := 0; i < len(from); i += 4 {
		rows = append(rows, binary.LittleEndian.Uint32(from[i:]))
	}
	return rows, nil
}

// hashOf is FNV-1a of the bits of parameters.
func hashOf(params []float32) uint64 {
	h := uint64(14695981039346656037)
	for _, p := range params {
		bits := math.Float32bits(p)
		for range 4 {
			h = (h ^ uint64(bits&0xff)) * 1099511628211
			bits >>= 8
		}
	}
	return h
}
