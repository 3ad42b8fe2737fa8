package native

import (
	"encoding/json"

	"github.com/rlhost/rlhost/hostabi"
)

// Version is the protocol's version, negotiated by go-plugin: a host offers the versions that it speaks and the plugin
// answers with one of them.
const Version = 2

// Values of go-plugin's handshake. The cookie is no secret: it tells a user who starts a plugin by hand that this
// is not how it is used.
const (
	CookieKey   = "RLHOST_PLUGIN"
	CookieValue = "5f1d2c86-7a0e-4d39-9f5e-rlhost-plugin"
	// PluginName is the name under which go-plugin's table lists the one plugin there is.
	PluginName = "rlhost"
)

// Files that the process inherits: the wire, then its transport's files.
const (
	FDWire      = 3
	FDTransport = 4
	FDIn        = 4 // of TransportRings
	FDOut       = 5
)

// TransportKey is the environment variable with the name of the process's transport: TransportRings where there is none.
const (
	TransportKey   = "RLHOST_TRANSPORT"
	TransportRings = "rings"
)

// Service is the gRPC service of the plugin. Its methods are called "/" + Service + "/" + name.
const Service = "rlhost.plugin.v1.Plugin"

// Methods of the service: name, request, reply.
const (
	MethodDescribe  = "Describe"  // Empty → Description
	MethodConfigure = "Configure" // Configuration → Configured
	MethodStart     = "Start"     // Empty → Empty
	MethodSnapshot  = "Snapshot"  // Empty → StateSize; the state itself is a file on the wire
	MethodRestore   = "Restore"   // StateSize → Empty; the file was sent on the wire before
	MethodPause     = "Pause"     // Pausing → Empty, once the component is paused
	MethodResume    = "Resume"    // Pausing → Empty; it ends a Pause, which is refused then if it has not been answered
	MethodWaiting   = "Waiting"   // Empty → WaitingList, of a paused component that will be stopped
	MethodCut       = "Cut"       // Empty → Empty; a component that is at one message for long gives up the rest of it, see component.Cuttable
	MethodStop      = "Stop"      // Empty → Empty
	MethodEnvLoad   = "EnvLoad"   // env.Source → EnvLoaded
	MethodEnvMake   = "EnvMake"   // EnvBatch → EnvScratch; the host then announces the scratch area on the wire. Environments that refuse to be made: CodeOrder
	MethodPolicy    = "Policy"    // PolicyWanted → PolicyMade
	MethodPolicyRun = "PolicyRun" // PolicyScratch → Empty; the host then announces the scratch area on the wire. It comes after Policy
	MethodEnvState  = "EnvState"  // EnvStateCall → StateSize; states are files on the wire, either way
)

// gRPC codes of calls that the plugin refuses.
const (
	CodeFailed      = 2  // Unknown: the request failed, in the component's words
	CodeInvalid     = 3  // InvalidArgument: the document cannot be read
	CodeOrder       = 9  // FailedPrecondition: not now, such as Start before Configure
	CodeUnsupported = 12 // Unimplemented: the plugin does not do that, or its state cannot be saved
)

// Capabilities that a plugin may have.
const (
	CapSnapshot = "snapshot" // its components can be saved and restored
	CapPause    = "pause"    // its components pause on request
	CapCut      = "cut"      // its components may be able to give up their present message
	CapEnv      = "env"      // it runs environments
	CapEnvState = "env_state"
	CapPolicy   = "policy" // it computes policies
)

// Empty is the document {}.
type Empty struct{}

// Description is a plugin's answer to its first call.
type Description struct {
	ABI          string   `json:"abi"`                 // of hostabi's layouts, such as "1.0"; another major does not work together
	SDK          string   `json:"sdk"`                 // for people, such as "go 1.0"
	Transport    string   `json:"transport,omitempty"` // the transport that it has opened; empty: TransportRings
	Capabilities []string `json:"capabilities"`
	Kinds        []Kind   `json:"kinds"` // of components
}

// ABI is the version of the layouts of rings, arenas and messages, and of the link's rules.
const ABI = "1.0"

// Kind is a kind of component that the plugin makes.
type Kind struct {
	Name    string `json:"name"` // snake_case
	Doc     string `json:"doc"`
	Signals []Port `json:"signals"` // in the order of their indexes in messages, as they are without any configuration
	Slots   []Port `json:"slots"`
	// Requests are the questions that the component answers.
	Requests []hostabi.Request `json:"requests,omitempty"`
	// Asks are the questions that it asks other components.
	Asks []hostabi.Request `json:"asks,omitempty"`
}

// Port is a signal or a slot; see component.Port.
type Port struct {
	Name    string `json:"name"`
	Payload string `json:"payload"`
	Doc     string `json:"doc"`
	OnLoan  bool   `json:"on_loan"`
	Schema  U64    `json:"schema,omitempty"`
}

// Configuration is everything that an instance of a component needs to be configured.
type Configuration struct {
	Kind   string         `json:"kind"`
	Name   string         `json:"name"` // component[i], or component
	ID     uint16         `json:"id"`   // Message.Sender of its messages
	Index  int            `json:"index"`
	Count  int            `json:"count"`
	Holder int            `json:"holder"` // its bit in the words of arenas; 0 while it only checks a configuration
	Config map[string]any `json:"config"` // the component's table
	// Lines is Config once more, as sorted lines "key=value\n" with nested keys joined by dots, arrays as their
	// elements joined by commas.
	Lines string `json:"lines"`
	Run   Run    `json:"run"`
	// Published is the newest policy version of the previous process of the component, or of learners of its policy before it; see
	// component.Host.
	Published uint64         `json:"published"`
	Abrupt    bool           `json:"abrupt,omitempty"` // see component.Host
	Begun     int            `json:"begun"`            // see component.Host
	Peers     map[string]int `json:"peers"`            // instances of each kind in the pipeline
	Readers   map[string]int `json:"readers"`          // by signal: blocks that its receivers may hold at once
	// Grants are the columns, by slot, that the component may write in blocks of the slot's messages.
	Grants map[string][]string `json:"grants"`
	// Written are the columns that wires let others write in the blocks that the component makes.
	Written []string `json:"written,omitempty"`
	// SoA is how blocks of the component's running instances lay observations out; none where none runs.
	SoA      *bool              `json:"soa,omitempty"`
	Policies map[string]Policy  `json:"policies"` // the pipeline's
	Envs     map[string]EnvSpec `json:"envs"`     // the descriptions of the pipeline's environments
	// Sources are the environments that the process may make itself: modules, and rlhost's own.
	Sources   map[string]json.RawMessage `json:"sources"`   // each an env.Source
	FirstEnv  int                        `json:"first_env"` // global index of the component's first environment
	LogLevel  string                     `json:"log_level"`
	CheckOnly bool                       `json:"check_only"` // nothing will be started: only the table is checked
}

// Run is the part that all components of a run share; see component.Run.
type Run struct {
	Name         string   `json:"name"`
	Seed         U64      `json:"seed"`
	Policy       string   `json:"policy,omitempty"` // the leading one
	Dir          string   `json:"dir"`
	Synchronous  bool     `json:"synchronous"`
	Resumes      int      `json:"resumes"`
	StopReturn   *float64 `json:"stop_return"`
	StopWindow   int      `json:"stop_window"`
	StopEnvSteps uint64   `json:"stop_env_steps"`
	StopWallNS   int64    `json:"stop_wall_ns"`
	// StopPolicies are rules for single policies, by their names.
	StopPolicies map[string]PolicyRule `json:"stop_policies,omitempty"`
}

// PolicyRule is the part of a run's stop rules for one policy.
type PolicyRule struct {
	Return   *float64 `json:"return,omitempty"`
	EnvSteps uint64   `json:"env_steps,omitempty"`
}

// Policy is a [policy.NAME] table and the environment that it is for.
type Policy struct {
	Table map[string]any `json:"table"`
	Env   string         `json:"env"`
	Memory
	Of      string `json:"of,omitempty"` // as the two after it, see component.PolicyTable
	From    string `json:"from,omitempty"`
	Version uint64 `json:"version,omitempty"`
	Group   int    `json:"group,omitempty"` // of agents that it plays, by its place in the environment's description
	// Network is the network's description, and Params its tensors in the order of published weights; none where it is not known yet.
	Network json.RawMessage `json:"network,omitempty"`
	Params  []PolicyWeight  `json:"params,omitempty"`
}

// EnvSpec is an environment's description as rl_describe writes it: hostabi.Spec and its tensors.
type EnvSpec struct {
	Describe []byte `json:"describe"`
}

// Configured is the answer to Configure.
type Configured struct {
	Errors []ConfigError `json:"errors"` // empty if the table is right
	Flow   *Flow         `json:"flow"`   // of a component that makes or gathers trajectory blocks
	// Signals and Slots are the ports of the component as configured; null: its Kind's.
	Signals []Port `json:"signals"`
	Slots   []Port `json:"slots"`
	// Requests are the questions that it answers, and Asks its questions to other components; null: its Kind's.
	Requests []hostabi.Request `json:"requests,omitempty"`
	Asks     []hostabi.Request `json:"asks,omitempty"`
}

// ConfigError is the error of one key; see component.ConfigError.
type ConfigError struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
	Help   string `json:"help"`
	Code   string `json:"code"`
}

// Flow is component.Flow.
type Flow struct {
	Splits      int `json:"splits"`
	Blocks      int `json:"blocks"`
	BlockRows   int `json:"block_rows"`
	Envs        int `json:"envs"`
	DatasetRows int `json:"dataset_rows"`

	Policies  map[string]string  `json:"policies,omitempty"`
	Opponents map[string]float64 `json:"opponents,omitempty"`
	Versions  int                `json:"versions,omitempty"`
}

// StateSize is the length of a state. The state is the file of the wire frame "state" with the same Call.
type StateSize struct {
	Call  uint64 `json:"call"`
	Bytes int64  `json:"bytes"`
}

// Pausing identifies a Pause. Calls may overtake each other: a Pause whose Resume came first is refused.
type Pausing struct {
	Number uint64 `json:"number"` // counts from 1 in each process
}

// WaitingList has the messages that a component has received and not begun to handle, in order. The process keeps its claims on the blocks
// until it is stopped.
type WaitingList struct {
	Messages []Waiting `json:"messages"`
}

// Waiting is one such message; see hostabi.Message.
type Waiting struct {
	Slot          string `json:"slot"`
	Sender        uint16 `json:"sender"`
	Kind          uint16 `json:"kind"`
	Handle        U64    `json:"handle"`
	T             uint32 `json:"t"`
	Split         uint32 `json:"split"`
	PolicyVersion uint64 `json:"policy_version"`
	Sequence      uint64 `json:"sequence"`
	Inline        [2]U64 `json:"inline"`
	Claimed       bool   `json:"claimed"` // the process has a claim on the block
}

// EnvLoaded is the answer to EnvLoad.
type EnvLoaded struct {
	Spec EnvSpec `json:"spec"`
	Hash string  `json:"hash"` // SHA-256 of the source, hexadecimal
	// Threads is how many step the environments of a batch side by side, at most; 0: the program does not know the key threads of a source.
	Threads int `json:"threads,omitempty"`
	// Alone: environments can be stepped one by one, while others are in steps; see hostabi.LinkEnvStepAlone.
	Alone bool `json:"alone,omitempty"`
	// Again: EnvMake may be called again, and replaces the environments that were made before.
	Again bool `json:"again,omitempty"`
	// Errors are in keys of the source, such as args.size. Where there are some, no environment was loaded.
	Errors []ConfigError `json:"errors,omitempty"`
}

// EnvBatch says which environments to make; see env.Options.
type EnvBatch struct {
	Name      string `json:"name"`
	Envs      int    `json:"envs"`
	FirstEnv  int    `json:"first_env"` // global index of environment 0
	Autoreset uint32 `json:"autoreset"` // hostabi.Autoreset
	Seed      U64    `json:"seed"`
	// FirstColumn is the place of environment 0 within the rows of the block, which has BlockEnvs environments:
	// several workers may share one block.
	FirstColumn int `json:"first_column"`
	BlockEnvs   int `json:"block_envs"`
}

// EnvScratch is the layout of a worker's scratch area, in bytes. The host makes the area and announces it on the wire as
// the file with number 0, before the first message that needs it; the frame and that message take different ways, so
// the worker waits for both.
type EnvScratch struct {
	MaskAt  int `json:"mask_at"`           // u8 per environment
	SeedsAt int `json:"seeds_at"`          // u64 per environment
	TextAt  int `json:"text_at"`           // of the newest error
	Text    int `json:"text"`              // room for it
	DoneAt  int `json:"done_at,omitempty"` // u64 that grows by 1 with each environment that a call has reset or stepped; 0: none
	Bytes   int `json:"bytes"`
}

// PolicyWanted asks for a policy, which the program computes.
type PolicyWanted struct {
	Name  string         `json:"name"`  // of the policy
	Table map[string]any `json:"table"` // its key args
	Env   EnvSpec        `json:"env"`   // of the agents that it plays
	Seed  U64            `json:"seed"`  // for what it draws
}

// PolicyMade describes the parameters of a policy, in their order, and the state that it keeps for each row.
type PolicyMade struct {
	Weights []PolicyWeight `json:"weights"`
	State   int            `json:"state"` // elements, float32
	// Network describes the same policy as a network of the host, for hosts that act by it; none where it has no description. It is as in
	// saved states, but for what the host adds: how each action is drawn, and types and values of inputs.
	Network json.RawMessage `json:"network,omitempty"`
}

// PolicyWeight is a tensor of parameters, float32.
type PolicyWeight struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// PolicyScratch is the layout of the scratch area of a program that computes a policy, in bytes. The host makes the area and announces it on
// the wire as the file with number 0. All columns have room for Rows rows, whose elements lie side by side.
type PolicyScratch struct {
	Rows      int            `json:"rows"`
	Obs       []PolicyColumn `json:"obs"`       // by observation
	Masks     []PolicyColumn `json:"masks"`     // by action; Elems is 0 of one without a mask
	Actions   []PolicyColumn `json:"actions"`   // by action: what the program has chosen
	StateAt   int            `json:"state_at"`  // f32, zeros where an episode begins
	AfterAt   int            `json:"after_at"`  // f32: the state after the rows
	ValueAt   int            `json:"value_at"`  // f32
	LogProbAt int            `json:"log_at"`    // f32
	ParamsAt  int            `json:"params_at"` // f32: a policy version
	TextAt    int            `json:"text_at"`   // of the newest error
	Text      int            `json:"text"`      // room for it
	Bytes     int            `json:"bytes"`
}

// PolicyColumn is a column of a PolicyScratch.
type PolicyColumn struct {
	Path  string `json:"path"`
	DType string `json:"dtype"`
	Elems int    `json:"elems"`
	At    int    `json:"at"`
}

// EnvStateCall is a call that is not on the step path. A call that the environments do not offer ends in
// CodeUnsupported, a refusal that has changed nothing in CodeOrder; after any other error the host makes them again.
type EnvStateCall struct {
	Do    string     `json:"do"`             // renew, snapshot, restore, save, load, ask, render
	Env   int        `json:"env"`            // for save, load and render
	Mode  int        `json:"mode,omitempty"` // for render, whose picture is returned as a state is: as rl_render takes it
	State *StateSize `json:"state"`          // for restore, load and ask, whose question it is: sent on the wire before
}
