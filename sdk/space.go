package sdk

// Space describes the elements of an action or an observation. Its element type is the type parameter of Env, except
// among several observations or actions.
type Space struct {
	Shape       []int     // nil = scalar
	Low, High   float32   // bounds of a Box; equal = unbounded
	Lows, Highs []float32 // bounds of each element of a Box, where they differ; may be infinite
	N           int       // values of a discrete space, or of each element of one; 0 = Box
	Counts      []int     // values of each element of a discrete space, where they differ; N is 0 then
	Start       int       // first value of a discrete space
	Binary      bool      // each element is 0 or 1: N is 2
	Picture     bool      // height, width, channels, of uint8
	Scale       float32   // factor of each element at the input of a network, applied by the host; 0 = 1
	Name        string    // path of the tensor, such as inventory/gold; "" for the only one
	Type        Type      // of the elements of one of several observations
}

// Type is the type of the elements of one of several observations.
type Type uint8

// Types of elements.
const (
	Float32 Type = iota // float32
	Uint8               // uint8
	Int32               // int32
	Int8                // int8
	Int16               // int16
	Int64               // int64
)

// As returns the space as one of several observations: its path, such as inventory/gold, and the type of its elements.
func (s Space) As(name string, t Type) Space {
	s.Name, s.Type = name, t
	return s
}

// Named returns the space as one of several actions: its path, such as arm/left. Elements are int32 where the space is discrete,
// else float32.
func (s Space) Named(name string) Space {
	s.Name = name
	return s
}

// Discrete is a choice from 0 to n-1.
func Discrete(n int) Space { return Space{N: n} }

// MultiDiscrete is a choice for each count, from 0 to that minus 1.
func MultiDiscrete(counts ...int) Space { return Space{Shape: []int{len(counts)}, Counts: counts} }

// MultiBinary is n elements of 0 or 1.
func MultiBinary(n int) Space { return Space{Shape: []int{n}, N: 2, Binary: true} }

// From returns a discrete space whose values begin with start.
func (s Space) From(start int) Space {
	s.Start = start
	return s
}

// Boxes is a vector of numbers, each from its low to its high, which may be infinite.
func Boxes(lows, highs []float32) Space {
	return Space{Shape: []int{len(lows)}, Lows: lows, Highs: highs}
}

// Image is a picture of uint8, [height][width][channels].
func Image(height, width, channels int) Space {
	return Space{Shape: []int{height, width, channels}, High: 255, Picture: true, Scale: 1. / 255}
}

// Box is a tensor of numbers from low to high; equal bounds mean unbounded.
func Box(low, high float32, shape ...int) Space { return Space{Shape: shape, Low: low, High: high} }

// Elems returns the number of elements, 1 for a scalar.
func (s Space) Elems() int {
	n := 1
	for _, dim := range s.Shape {
		n *= dim
	}
	return n
}

// Choices returns how many values all elements of a discrete space have together, the length of its action mask; 0 for a Box.
func (s Space) Choices() int {
	n := s.N * s.Elems()
	for _, count := range s.Counts {
		n += count
	}
	return n
}

// Figure is a number that an environment reports in each step, such as a score. A host that gathers none ignores it.
type Figure struct {
	Name    string // its path
	Gather  Gather // how the figures of an episode become one
	Episode bool   // only the figure of an episode's last step counts
}

// Gather is how the figures of an episode become one.
type Gather uint8

// Ways to gather.
const (
	Last Gather = iota
	Sum
	Mean
	Max
	Min
)

// Arg describes an argument, for the host to check and for people to read.
type Arg struct {
	Name, Doc     string
	Kind          ArgKind
	Default       string   // as in the pipeline
	Min, Max      float64  // of a number; both 0 = none
	Choices       []string // of ChoiceArg
	AffectsSpaces bool     // tensors depend on it
}

// ArgKind is the kind of an argument's values.
type ArgKind uint8

// Kinds of arguments.
const (
	TextArg ArgKind = iota
	IntegerArg
	NumberArg
	BoolArg
	ChoiceArg
)

// Spec describes an environment.
type Spec struct {
	Name                        string // name@version
	Action, Obs                 Space
	Observations                []Space  // of a DictEnv or CompositeEnv, in the place of Obs
	Actions                     []Space  // of a CompositeEnv, in the place of Action
	Figures                     []Figure // of an environment that is a Teller, or of a Batch
	Args                        []Arg    // arguments; if there are any the host refuses others, and values that they do not take
	Params                      Space    // of a ParamTaker, or of a BatchParamTaker: a vector; without a shape there are none
	Discount                    bool     // the environment's own, in Result, takes the place of the learner's gamma
	Agents                      int      // with the same spaces and one row each; 0 = 1. Figures are the environment's; there is no discount
	EpisodeLimit                int      // steps after which the environment itself truncates, 0 = none
	MaxEnvs                     int      // most environments in one batch, 0 = no limit
	StateVersion                uint32   // of saved environments: raise it when their format changes
	AgentNames                  []string // of each agent; nil where they have none
	ResetInfos                  []string // names of numbers of an episode that begins, of a ResetTeller
	DT                          float32  // seconds of simulated time in a step, 0 = not said
	PictureWidth, PictureHeight int      // of a Drawer's or BatchDrawer's pictures
	PictureFPS                  float32  // pictures a second at normal speed, 0 = not said
	Keys                        string   // actions of the keys of a person who plays, one a line: "left=0\nright=1\nnone=1"
	PreferSoA                   bool     // faster with one array per element than with one row per environment

	// Apart says that each agent's episode ends by the flags of its own result, see Rewarder. It does not act again until the
	// environment begins its next episode, which it does when all have ended.
	Apart bool

	// Respawn says that each agent's episode ends by the flags of its own result, see Rewarder, and the next begins at once; the environment
	// is a Respawner. Step puts the agent back into the world and writes the first observation of its new life, after it has told
	// the SDK that the row showed the last one of the old. Where it sets the flags of all agents and says so of none, the environment's own episode is
	// over, and Reset is called.
	Respawn bool

	// Describe (optional) changes the other fields where they depend on arguments.
	Describe func(config *Config, spec *Spec)
}
