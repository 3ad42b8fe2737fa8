package native

import "encoding/json"

// Frame is one datagram of the wire socket: a JSON document with exactly one of its fields set. Files travel with
// it in the order that the field states. Their receiver owns them.
type Frame struct {
	// To the plugin.

	// Arena announces an arena, or answers AddArena. Files: words segment, data segment.
	Arena *Arena `json:"arena,omitempty"`
	// Removed: the arena of that ID is gone.
	Removed *uint8 `json:"removed,omitempty"`
	// Failed refuses a call of the plugin.
	Failed *Failed `json:"failed,omitempty"`
	// File announces a segment that environment blocks lie in, or the scratch area. Files: the segment.
	File *File `json:"file,omitempty"`
	// Request is a question to the component.
	Request *Question `json:"request,omitempty"`
	// Told answers an Ask.
	Told *Answer `json:"told,omitempty"`

	// Either way.

	// State is a saved state. Files: a memory file of State.Bytes bytes.
	State *StateSize `json:"state,omitempty"`

	// To the host.

	// AddArena asks for an arena.
	AddArena *AddArena `json:"add_arena,omitempty"`
	// Stats reports new values of the component's metrics.
	Stats *Stats `json:"stats,omitempty"`
	// Fail ends the component with an error for the user.
	Fail *Fail `json:"fail,omitempty"`
	// Answer answers a Question.
	Answer *Answer `json:"answer,omitempty"`
	// Ask is a question to another component: its Name is one of the component's Asks. The host answers each by Told, the last at the end
	// of its time.
	Ask *Question `json:"ask,omitempty"`
	// Metric names a number that environments report by LinkEnvMetric.
	Metric *Metric `json:"metric,omitempty"`
}

// MaxFrame is the most bytes of a frame's document, and MaxFiles the most files with it.
const (
	MaxFrame = 128 << 10
	MaxFiles = 2
)

// Arena describes an arena.
type Arena struct {
	Call       uint64  `json:"call"` // of AddArena, 0 for an announcement
	ID         uint8   `json:"id"`
	Name       string  `json:"name"`
	Blocks     int     `json:"blocks"`
	BlockBytes int     `json:"block_bytes"`
	ReadOnly   bool    `json:"read_only"` // the data segment can only be mapped for reading
	Schema     *Schema `json:"schema"`
}

// Schema describes the blocks of an arena. Kind is trajectory, names, or tensors.
type Schema struct {
	Kind string `json:"kind"`
	// Of a trajectory: the environment and the shape it was laid out for, and, for readers that do not compute the
	// layout, where each column lies.
	Spec  *EnvSpec `json:"spec,omitempty"`
	Steps int      `json:"steps,omitempty"`
	Envs  int      `json:"envs,omitempty"`
	SoA   bool     `json:"soa,omitempty"`
	// Names of the policies that act in its rows, ascending, a space between them; empty where one acts in all of them.
	Policies string `json:"policies,omitempty"`
	// The group of agents that each of them plays, 0 for policies that are not listed.
	Groups []int `json:"groups,omitempty"`
	// Names of the columns on separate pages, ascending, a space between them.
	Granted string `json:"granted,omitempty"`
	Memory
	GuestBytes int      `json:"guest_bytes,omitempty"`
	Bytes      int      `json:"bytes,omitempty"`
	Columns    []Column `json:"columns,omitempty"`
	// Of a list of float64 values: their names in order.
	Names []string `json:"names,omitempty"`
}

// Memory is a policy's need of rows before the row that it acts on, which blocks keep; see trajectory.Memory.
type Memory struct {
	Past int `json:"past,omitempty"` // rows before row 0
	// Learned and Executed: blocks also have the rewards as shaped by wrappers, and the actions as taken by environments.
	Learned  bool `json:"learned,omitempty"`
	Executed bool `json:"executed,omitempty"`

	State int `json:"state,omitempty"` // numbers of each environment
	Chunk int `json:"chunk,omitempty"` // rows after which the state is stored for good; 0 = steps
}

// Column is the place of one column or tensor in a block; see trajectory.Layout. Element (t, env, i) is at
// offset + t*stride_t + env*stride_env + i*stride_elem bytes.
type Column struct {
	Name       string `json:"name"`
	DType      string `json:"dtype"`
	Rows       int    `json:"rows"`
	Envs       int    `json:"envs"`
	Elems      int    `json:"elems"`
	Shape      []int  `json:"shape"` // of one environment's element
	Offset     int    `json:"offset"`
	StrideT    int    `json:"stride_t"`
	StrideEnv  int    `json:"stride_env"`
	StrideElem int    `json:"stride_elem"`
}

// AddArena asks the host for an arena. The answer is Arena or Failed with the same Call.
type AddArena struct {
	Call       uint64  `json:"call"`
	Name       string  `json:"name"`
	Blocks     int     `json:"blocks"`
	BlockBytes int     `json:"block_bytes"`
	Schema     *Schema `json:"schema,omitempty"`
}

// Question asks the component a request of its description; see component.Handler. It is asked between two messages.
type Question struct {
	Call     uint64          `json:"call"` // counts from 1 in each process
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args"`      // an object that fits the description, of at most hostabi.MaxRequestBytes
	WithinNS int64           `json:"within_ns"` // a component that has not begun by then does not begin
}

// Reasons of a Raised, where the handler did not raise it.
const (
	WhyArgs = "args" // the arguments do not fit
	WhyLate = "late" // there was no answer in time
	WhyLost = "lost" // the component has ended before it answered
	WhyBusy = "busy" // too many questions wait for an answer
)

// Answer answers the Question with the same Call: by Reply, any value of at most hostabi.MaxRequestBytes, or by Error.
type Answer struct {
	Call  uint64          `json:"call"`
	Reply json.RawMessage `json:"reply,omitempty"`
	Error *Raised         `json:"error,omitempty"`
}

// Raised is the error of a handler; see component.Raised.
type Raised struct {
	Type   string `json:"type,omitempty"` // such as ValueError
	Text   string `json:"text"`
	Place  string `json:"place,omitempty"`  // in the component's source, such as train.py:40
	Answer bool   `json:"answer,omitempty"` // the handler has returned something that is no answer
	Why    string `json:"why,omitempty"`    // of Told: WhyArgs and so on
}

// Failed says why a call of the plugin was refused.
type Failed struct {
	Call   uint64 `json:"call"`
	Reason string `json:"reason"`
}

// File announces a segment. LinkEnvBind has its Number; 0 is the scratch area.
type File struct {
	Number uint64  `json:"number"`
	Bytes  int64   `json:"bytes"`
	Schema *Schema `json:"schema,omitempty"`
}

// Fail is an error of the plugin's component.
type Fail struct {
	Reason string `json:"reason"`
}

// Metric gives a name its number.
type Metric struct {
	Number uint32 `json:"number"`
	Name   string `json:"name"`
}

// CounterEnvsMade is the counter in Stats of a worker of environments that EnvMake keeps waiting: how many it has made by now.
const CounterEnvsMade = "envs_made"

// Stats has the metrics that have changed, by name.
type Stats struct {
	Counters map[string]uint64  `json:"counters,omitempty"` // counts since the process began
	Gauges   map[string]float64 `json:"gauges,omitempty"`
	// Histograms and Distributions have the observations since the previous frame, as numbers or as counts in the
	// buckets of stat.Histogram.
	Histograms    map[string][]float64    `json:"histograms,omitempty"`
	Distributions map[string]Distribution `json:"distributions,omitempty"`
}

// Distribution is stat.Buckets.
type Distribution struct {
	Sum     float64  `json:"sum"`
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	Invalid uint64   `json:"invalid,omitempty"` // NaN and infinite numbers
	Index   []int    `json:"index"`             // of the buckets that are not empty, in order
	Count   []uint64 `json:"count"`             // numbers in each of them
}
