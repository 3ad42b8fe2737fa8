package hostabi

import "structs"

// Sizes of the structs below. The guest's sizes of the records that it makes are in ComponentSpec.
const (
	ComponentSpecBytes    = 96
	PortBytes             = 40
	ColumnDescBytes       = 24
	ComponentMessageBytes = 64
	ColumnBindingBytes    = 64
	IdentityBytes         = 48
	RequestDescBytes      = 24
	RequestCallBytes      = 32
	AnswerCallBytes       = 64
)

// ComponentFlags are flags of components.
type ComponentFlags uint32

// Flags of components.
const (
	ComponentStateless ComponentFlags = 1 << iota // there is nothing to save: rl_snapshot is not called
)

// PortFlags are flags of ports.
type PortFlags uint32

// Flags of ports.
const (
	PortOnLoan PortFlags = 1 << iota // the messages name a block that the sender still has on loan, which carries no claim
	PortBlocks                       // of a slot: it looks at undeclared columns too, by name, with rl_component.column
)

// ColumnFlags say how a slot uses a column.
type ColumnFlags uint32

// Flags of columns.
const (
	ColumnWrite    ColumnFlags = 1 << iota // written too, where the wire grants it
	ColumnOptional                         // the slot runs without it: it is bound to address 0 where blocks have none
)

// MetricKind is how a metric's values are combined.
type MetricKind uint32

// Kinds of metrics.
const (
	MetricCounter   MetricKind = 1 + iota // a value is added; whole numbers from 0 up
	MetricGauge                           // the newest counts
	MetricHistogram                       // values are counted by size
)

// F64 is a type of columns that tensors of environments do not have.
const F64 DType = 9

// Outcome is the fate of an emitted message.
type Outcome int32

// Outcomes.
const (
	OutcomeSent    Outcome = iota // all receivers get it
	OutcomeParked                 // they get it when they have room, and this component gets no message until then
	OutcomeDropped                // a receiver does not get it, as its wire says, or there is none
)

// StopReason says why a component asks the run to end.
type StopReason uint32

// Reasons to end a run.
const (
	StopForOwn StopReason = iota // one of the component's own
	StopForReturn
	StopForEnvSteps
	StopForWall
)

// ComponentSpec is the head of rl_manifest's output. PortDesc records follow it, of the signals and then of the slots, then
// ColumnDesc records, then RequestDesc records of the requests and of the asks; then the string table, as in an environment's description. Reserved fields are 0.
type ComponentSpec struct {
	_ structs.HostLayout

	Size         uint32         // 0: of this record: ComponentSpecBytes
	ABIMajor     uint16         // 4
	ABIMinor     uint16         // 6
	Needs        uint64         // 8: features without which it cannot run; there are none yet
	PortBytes    uint16         // 16: sizes of the other records
	ColumnBytes  uint16         // 18
	MessageBytes uint16         // 20
	BindingBytes uint16         // 22
	Signals      uint32         // 24: how many ports follow
	Slots        uint32         // 28
	Columns      uint32         // 32
	StringsAt    uint32         // 36: the string table
	StringsLen   uint32         // 40
	Flags        ComponentFlags // 44
	Name         uint32         // 48: strings
	Version      uint32         // 52
	Doc          uint32         // 56
	Licence      uint32         // 60
	Requests     uint32         // 64: how many descriptions of requests follow; not looked at where ABIMinor is 0
	RequestBytes uint32         // 68: the size of each, likewise
	Asks         uint32         // 72: how many RequestDesc of questions to others follow them; not looked at where ABIMinor is 0 or 1
	_            [5]uint32
}

// PortDesc describes a signal or a slot.
type PortDesc struct {
	_ structs.HostLayout

	Name    uint32    // 0: string, snake_case
	Payload uint32    // 4: string: trajectory, episode, … or a name that the component chooses
	Doc     uint32    // 8: string, one sentence
	Flags   PortFlags // 12
	Schema  uint64    // 16: what sender and receiver must agree on, such as the first 8 bytes of a hash; 0 = not said
	_       [4]uint32
}

// ColumnDesc names a column that a slot uses. Its bindings come with each message of the slot, in the order of these records.
type ColumnDesc struct {
	_ structs.HostLayout

	Slot  uint32      // 0: index
	Name  uint32      // 4: string: its kind, such as reward or obs, then /index for all of a kind but the first
	Flags ColumnFlags // 8
	DType DType       // 12: that it must have, 0 = any
	_     [3]uint8    // 13
	_     [2]uint32
}

// ComponentMessage is a message as guests see it: as rl_slot gets it and as emit takes it.
type ComponentMessage struct {
	_ structs.HostLayout

	Block         uint32    // 0: token of the block that it names; 0 = none
	Columns       uint32    // 4: address of as many ColumnBinding records as the slot has columns; not read by emit
	T             uint32    // 8: row of the block
	Split         uint32    // 12: of the component that emitted it
	PolicyVersion uint64    // 16: that it speaks of
	Inline        [2]uint64 // 24: contents that travel in the message itself
	Kind          uint16    // 40: meaning of Inline, defined by the payload
	_             uint16    // 42
	Sender        uint32    // 44: component that gets the answer; of a message passed on, its sender; 0 = this component
	_             [4]uint32
}

// ColumnBinding is the place of a column, in bytes of the guest's memory: it begins as Binding does. The element (t, env, agent,
// i) is at Ptr + t*StrideT + env*StrideEnv + agent*StrideAgent + i*StrideElem.
type ColumnBinding struct {
	_ structs.HostLayout

	Ptr         uint32 // 0: 0 for an optional column that the block has not
	StrideT     uint32 // 4: 0 for columns without time
	StrideEnv   uint32 // 8
	StrideAgent uint32 // 12: 0 where there are no agents, or all share
	StrideElem  uint32 // 16
	Rows        uint32 // 20: T, T+1 or 1
	RowAlign    uint32 // 24: every row begins at a multiple of it
	Envs        uint32 // 28: 1 where environments share
	Agents      uint32 // 32: of an environment, 1 where there are none
	Elems       uint32 // 36: of one agent of one environment
	DType       DType  // 40
	Writable    uint8  // 41: 1 if writes go into the block
	_           uint16 // 42
	_           [5]uint32
}

// Identity says which instance a component is, of which run.
type Identity struct {
	_ structs.HostLayout

	Size        uint32 // 0: of this record: IdentityBytes
	Index       uint32 // 4: which of Count instances
	Count       uint32 // 8
	Synchronous uint32 // 12: 1: the run must be reproducible bit by bit
	Seed        uint64 // 16: of the run
	NameAt      uint32 // 24: offset of its name from the record's first byte; the name is component[i] if there are several
	NameLen     uint32 // 28
	_           [4]uint32
}

// RequestDesc describes a request that the component answers, or a question that it asks others.
type RequestDesc struct {
	_ structs.HostLayout

	Name uint32 // 0: string, snake_case
	Doc  uint32 // 4: string, one sentence
	Args uint32 // 8: string: its arguments as NAME TYPE, joined with a comma and a space; TYPE? may be left out
	_    [3]uint32
}

// RequestCall begins the argument of rl_request.
type RequestCall struct {
	_ structs.HostLayout

	Size    uint32 // 0: of this record: RequestCallBytes
	Request uint32 // 4: index in the manifest
	ArgsAt  uint32 // 8: offset of the arguments from the record's first byte: a JSON object, which fits the description
	ArgsLen uint32 // 12
	_       [4]uint32
}

// AnswerCall begins the argument of rl_answer. Places are offsets from the record's first byte; texts are UTF-8.
type AnswerCall struct {
	_ structs.HostLayout

	Size     uint32      // 0: of this record: AnswerCallBytes
	Question uint32      // 4: the number that rl_component.ask has returned
	Ask      uint32      // 8: index in the manifest
	Fault    AnswerFault // 12: 0 = there is an answer
	TextAt   uint32      // 16: the answer, a JSON value; after a fault its text
	TextLen  uint32      // 20
	TypeAt   uint32      // 24: the type of an error of the other component, such as ValueError
	TypeLen  uint32      // 28
	PlaceAt  uint32      // 32: where it happened, such as coach.py:12
	PlaceLen uint32      // 36
	_        [6]uint32
}
