package policy

import "github.com/rlhost/rlhost/core/trajectory"

// Backend computes policies in one way. Its methods may be called concurrently.
type Backend interface {
	// Name is the backend's name in TOML: cpu, gorgonia, cuda.
	Name() string
	// Kernels names the set of kernels in use, such as avx512. Results are bit-equal within one set.
	Kernels() string
	// Compile prepares a network, which it copies. A part that the backend cannot compute is ErrUnsupported, with the
	// part's name.
	Compile(n *Network) (Program, error)
}

// Program is a network as a backend computes it. Its methods may be called concurrently; their results belong to one
// goroutine at a time. A program whose parameters can be improved is a ppo.Program too.
type Program interface {
	// NewActor prepares acting on up to maxRows rows a call.
	NewActor(maxRows int) (Actor, error)
}

// NewActor compiles a network and prepares acting on up to maxRows rows a call.
func NewActor(b Backend, n *Network, maxRows int) (Actor, error) {
	p, err := b.Compile(n)
	if err != nil {
		return nil, err
	}
	return p.NewActor(maxRows)
}

// Actor acts with one policy version at a time.
type Actor interface {
	// Load replaces the weights. It copies them.
	Load(w Weights) error
	// Act fills the outputs of every request. It does not allocate. A row's outputs depend on its observation,
	// mask, key and the weights alone.
	Act(requests []Request) error
	Close() error
}

// Request asks for the rows of one block at one time. Its views lie in the block; the slices of views are the caller's, with
// one element for each input or for each action of the network, and matrices have one row for each row that is asked for.
type Request struct {
	// Obs is by frame: for each input its frames, the current one last, of the input's dtype, [rows][elements], any strides.
	// See Binding.
	Obs []trajectory.Matrix
	// Age is how many rows the episode of each row has been running, 255 at most; nil where the network depends on no other
	// row. Rows from before an episode are not read.
	Age []byte
	// Mask is by action: u8 [rows][choices], Rows = 0 without a mask; nil where no action has one. An element of an action
	// without a legal choice is ErrNoLegalAction.
	Mask []trajectory.Matrix
	// State is the network's state of each row's environment, [rows][Network.State] f32, after the previous row: zero where
	// Age is 0. StateOut receives the state after the rows, unless its Rows is 0. The two do not share memory.
	State, StateOut trajectory.Matrix
	// Outputs. Action, Raw and LogProb are nil when only the value is wanted. Action is the environment's action: i32 for
	// discrete elements, f32 for a Box. Raw is the raw sample of a Box, f32, for the learner; it is the zero Matrix for
	// other actions, and nil where no action is a Box. The elements of a Discrete action lie side by side.
	Action, Raw []trajectory.Matrix
	LogProb     []float32 // joint, of all actions
	Value       []float32
	// Key of the action sampling: run seed, global index of row 0's environment, env step of the rows.
	Seed     uint64
	FirstEnv uint32
	Step     uint64
	// Places are the offsets from FirstEnv of each row, where rows are not contiguous; nil: the number of the row.
	Places []uint32
	Greedy bool // take the most probable action (the first of equals) instead of a sample
}
