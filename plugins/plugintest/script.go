package plugintest

import (
	"github.com/rlhost/rlhost/hostabi"
)

// Script is the behaviour of scripted environments. The zero value is a plain one: two actions, episodes of ten steps
// that end terminated, a reward of 1 a step. The functions run on the goroutine that steps the environments.
type Script struct {
	Name         string            // name@version; default scripted@1
	Autoreset    hostabi.Autoreset // modes offered; default all three
	Caps         hostabi.Caps      // default: any strides
	Actions      int               // of one Discrete action; default 2
	Spaces       []hostabi.Tensor  // of the actions, in place of that one: their element type, shape, counts and bounds
	Picture      bool              // a second observation, u8 [2][3][1], with the step and the chance
	MaxEnvs      int               // 0 = no limit
	EpisodeLimit int               // as described; it is Length and Ends that keep it

	Length func(env, episode int) int // steps of an episode, 1 or more
	Ends   func(env, episode int) End // how it ends; default Terminates
	Reward func(At) float32           // of the step
	// Legal says which values of actions are legal before that step; nil = no mask. All values of all elements count up from 0.
	Legal func(at At, value int) bool
	// Discount is that of the step, in the place of the learner's constant; nil = no such tensor.
	Discount func(At) float32
	// Infos are described with their paths, shapes and flags; Tell sets the figures of all of them, one after the other, before
	// it 0. An info of the end of an episode is written in that row alone.
	Infos []hostabi.Tensor
	Tell  func(at At, figures []float32)
	// Observations replace ObsElems and Picture: they have paths, element types (f32, i32 or u8), shapes, counts and bounds. Show
	// sets the elements of all of them, one after the other, before that step, or the elements of an episode's last observation.
	Observations []hostabi.Tensor
	Show         func(at At, elems []float64)
	// Observe changes the observation before that step, or the last one of an episode; nil = it stays as scripted.
	Observe func(at At, obs *[ObsElems]float32)
	Cue     func(At) Cue                          // fault in that step
	Metric  func(At) (name string, value float64) // reported after the step; an empty name is none
	Flaws   Flaws
}

// At is one step of one environment, or the beginning of an episode.
type At struct {
	Env      int       // global index
	Episode  int       // counts from 0 since the last reset with seeds
	Step     int       // steps made in the episode before this one
	Action   int32     // of the step, where there is one Discrete action
	Actions  []float32 // of the step, all elements of all actions; it may be read until the function returns
	Sum      float32   // of the actions taken in the episode before the step, of all their elements
	Calls    uint64    // calls of Env.Step since the batch was made or renewed, this one included
	Renewals int       // how often the batch was renewed
	Reset    bool      // an episode begins in Env.Reset, and no step is made
}

// End is how an episode ends; both at once is allowed.
type End uint8

// Ends.
const (
	Terminates End = 1 << iota
	Truncates
)

// Cue is a fault.
type Cue uint8

// Cues. Those before NaNObservation are faults of the call, the others are written for the host to find.
const (
	Nothing     Cue = iota
	Trap            // the environment needs Renew afterwards
	Deadline        // the same, because it took too long
	ErrorStatus     // the call returns an error; the environment continues

	NaNObservation
	NaNFinalObs // in the step that ends an episode, under same-step autoreset
	NaNReward
	InfiniteReward
	TerminatedOfTwo
	TruncatedOfTwo
	NoLegalAction
	MaskOfThree
)

// Flaws are lasting faults of an environment, each of which some check must find.
type Flaws struct {
	SharedChance  bool    // one stream of random numbers for all environments of a batch
	IgnoresSeeds  bool    // Reset does not restart streams
	FirstSeed     bool    // Reset restarts all streams with the seed of the first environment
	Leftover      bool    // a reset with seeds does not restart the count of episodes
	LossySnapshot bool    // snapshots forget the streams
	NoSnapshot    bool    // snapshots are not supported
	PhantomReward float32 // reward of the step after an end under next-step autoreset, and while the environment waits for its reset
	NoWaiting     bool    // a step of an environment that waits for its reset is refused
	WaitingMoves  bool    // it shows another observation
	WaitingDraws  bool    // it takes a random number
	ForgetsEnd    bool    // a saved state does not say that the episode has ended
	OutOfBounds   bool    // observations leave the bounds that are declared
	MaskAfterEnd  bool    // the mask after an end is not all 1
	NoFinalObs    bool    // same-step autoreset writes the last observation of the first episode alone
	Allocates     bool    // each step allocates
	FirstBlock    bool    // only the first block that is bound is used
}

// Elements of an observation.
const (
	ObsEnv     = iota // global index of the environment
	ObsEpisode        // as At.Episode
	ObsStep           // steps made in the episode
	ObsChance         // a number in [0, 1) from the environment's own stream, a new one for each observation
	ObsActions        // sum of the actions taken in the episode, of all their elements
	ObsElems
)

// Spaces returns spaces of actions by name, each a row of the tests of environments.
func Spaces() map[string][]hostabi.Tensor {
	vector := [hostabi.MaxRank]uint32{3}
	box := hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: vector, Lows: []float32{-2, 0, -1}, Highs: []float32{2, 1, -0.5}}
	several := hostabi.Tensor{DType: hostabi.I32, Rank: 1, Shape: vector, Counts: []uint32{4, 2, 3}}
	return map[string][]hostabi.Tensor{
		"a Box":           {box},
		"an open Box":     {{DType: hostabi.F32, Rank: 1, Shape: vector, Flags: hostabi.TensorNoHigh}},
		"a MultiDiscrete": {several},
		"a MultiBinary":   {{DType: hostabi.I32, Rank: 1, Shape: vector, N: 2, Flags: hostabi.TensorBinary}},
		"a start":         {{DType: hostabi.I32, N: 3, Start: -1}},
		"a tuple":         {several, box, {DType: hostabi.I32, N: 3, Start: 7}},
	}
}

func (s Script) withDefaults() Script {
	if s.Name == "" {
		s.Name = "scripted@1"
	}
	if s.Autoreset == 0 {
		s.Autoreset = hostabi.SameStep | hostabi.NextStep | hostabi.Disabled
	}
	if s.Caps == 0 {
		s.Caps = hostabi.CapStrides
	}
	if s.Actions == 0 {
		s.Actions = 2
	}
	if s.Length == nil {
		s.Length = func(int, int) int { return 10 }
	}
	if s.Ends == nil {
		s.Ends = func(int, int) End { return Terminates }
	}
	if s.Reward == nil {
		s.Reward = func(At) float32 { return 1 }
	}
	if s.Cue == nil {
		s.Cue = func(At) Cue { return Nothing }
	}
	return s
}
