package sdk

import "slices"

// Action is an element of an action: int32 for discrete choices, float32 for a Box.
type Action interface{ int32 | float32 }

// Element is an element of an observation.
type Element interface {
	uint8 | int8 | int16 | int32 | int64 | float32
}

// Env is one environment. The slices are valid during the call only. An environment that also implements
// encoding.BinaryAppender and encoding.BinaryUnmarshaler can be saved and loaded. With Masker it has an action mask
// if its action is discrete, with fmt.Stringer it shows itself as text, and with Drawer in colours. For several agents, see Spec.Agents,
// action and obs have consecutive rows, one for each.
type Env[A Action, O Element] interface {
	// Reset starts an episode and writes its first observation. rng is the environment's own stream.
	Reset(rng *Rand, obs []O)
	// Step advances by one step and writes all of the next observation, also after the last step.
	Step(rng *Rand, action []A, obs []O) Result
}

// DictEnv is an environment with several observations, which Spec.Observations describes. All else is as with Env.
type DictEnv[A Action] interface {
	// Reset starts an episode and writes its first observations. rng is the environment's own stream.
	Reset(rng *Rand, obs *Observed)
	// Step advances by one step and writes all of the next observations, also after the last step.
	Step(rng *Rand, action []A, obs *Observed) Result
}

// CompositeEnv is an environment with several actions, a Tuple or Dict of them, which Spec.Actions describes, and with the observations
// of Spec.Observations: one or several. All else is as with Env.
type CompositeEnv interface {
	// Reset starts an episode and writes its first observations. rng is the environment's own stream.
	Reset(rng *Rand, obs *Observed)
	// Step advances by one step and writes all of the next observations, also after the last step.
	Step(rng *Rand, action *Taken, obs *Observed) Result
}

// Taken has the rows of an environment's actions in the order of Spec.Actions: row i is in Int32 if the space of action i is discrete,
// else in Float32; the other element i is nil. TakenAt finds them by name. The rows are valid during the call only.
type Taken struct {
	Names   []string // of the actions; nil finds none by name
	Int32   [][]int32
	Float32 [][]float32
}

// TakenAt returns the row of the action with that path: of int32 if its space is discrete, else of float32. It panics where there is none.
func TakenAt[A Action](taken *Taken, name string) []A {
	var row []A
	i := slices.Index(taken.Names, name)
	switch row := any(&row).(type) {
	case *[]int32:
		*row = rowAt(taken.Int32, i)
	case *[]float32:
		*row = rowAt(taken.Float32, i)
	}
	if row == nil {
		panic("action " + name + ": no action of this type has the name")
	}
	return row
}

// Observed has the rows of an environment's observations in the order of Spec.Observations: row i is in the slice for the
// type of observation i; element i of the others is nil. ObservedAt finds them by name. The rows are valid during the call only.
type Observed struct {
	Names   []string // of the observations; nil finds none by name
	Float32 [][]float32
	Uint8   [][]uint8
	Int32   [][]int32
	Int8    [][]int8
	Int16   [][]int16
	Int64   [][]int64
}

// ObservedAt returns the row of the observation with that path, of the type of its elements. It panics where there is none.
func ObservedAt[O Element](obs *Observed, name string) []O {
	var row []O
	i := slices.Index(obs.Names, name)
	switch row := any(&row).(type) {
	case *[]float32:
		*row = rowAt(obs.Float32, i)
	case *[]uint8:
		*row = rowAt(obs.Uint8, i)
	case *[]int32:
		*row = rowAt(obs.Int32, i)
	case *[]int8:
		*row = rowAt(obs.Int8, i)
	case *[]int16:
		*row = rowAt(obs.Int16, i)
	case *[]int64:
		*row = rowAt(obs.Int64, i)
	}
	if row == nil {
		panic("observation " + name + ": no observation of this type has the name")
	}
	return row
}

// rowAt returns row i, nil where it is of another type.
func rowAt[T any](rows [][]T, i int) []T {
	if i < 0 || i >= len(rows) {
		return nil
	}
	return rows[i]
}

// Result is the result of a step besides its observation. If both flags are set, terminated wins. With several agents each of
// them gets it, unless the environment is a Rewarder.
type Result struct {
	Reward                float32
	Terminated, Truncated bool
	Discount              float32 // of later rewards, 0 to 1, if Spec.Discount is set: it is written in every step
}

// Teller reports an environment's figures after each step, in the order of Spec.Figures. All are 0 before the call.
type Teller interface {
	Tell(figures []float32)
}

// ResetTeller tells numbers of the episode that begins, after each Reset, in the order of Spec.ResetInfos. All are 0 before the call. Of a
// Batch it is BatchResetTeller.
type ResetTeller interface {
	TellReset(infos []float32)
}

// BatchResetTeller is a Batch, DictBatch or CompositeBatch that tells numbers of the episode of environment i that begins; see ResetTeller.
type BatchResetTeller interface {
	TellReset(i int, infos []float32)
}

// ParamTaker gets the reset parameters of Spec.Params before each Reset: numbers that the host sets for the episode, such as the
// level of a curriculum. Each is NaN if nobody sets it, see ParamOr, else within its bounds; params is valid during the call only.
type ParamTaker interface {
	SetParams(params []float32)
}

// ParamOr returns reset parameter k out of what SetParams takes, or fallback where nobody sets it.
func ParamOr(params []float32, k int, fallback float32) float32 {
	if x := params[k]; x == x {
		return x
	}
	return fallback
}

// Rewarder sets the result of each agent after each step: results has one element per agent, which begins as the result of
// Step. Its flags count if Spec.Apart or Spec.Respawn is set; else the flags of Step do.
type Rewarder interface {
	Reward(results []Result)
}

// Respawner is an environment of Spec.Respawn. It gets last once, before its first Reset: in Step, last(agent) says that what the agent's row
// of the observations shows now is the last observation of its life.
type Respawner interface {
	SetLast(last func(agent int))
}

// TurnTaker says which agents act in the next step: acts has one element per agent, which begins as 1; 0 = it does not. The action
// of an agent that does not act is not read, and its rewards meanwhile count with its last action.
type TurnTaker interface {
	Active(acts []uint8)
}

// Masker says which actions are legal: legal has one element per value of each element of the action, 1 = legal. The values of the first
// element come first; with several actions, the first discrete action; with several agents, the first agent. ActionMask is not called after
// the end of an episode, and the mask of an agent that does not act is not read.
type Masker interface {
	ActionMask(legal []uint8)
}

// Batch is many environments that step together, for authors who can step them faster than one by one.
type Batch[A Action, O Element] interface {
	// Reset starts an episode of environment i and writes its first observation.
	Reset(i int, rng *Rand, obs []O)
	// Step advances environments first … first+len(rngs)-1, none of which waits for a reset, and writes every element
	// of rows except the actions. The caller handles the ends of episodes.
	Step(first int, rngs []Rand, rows Rows[A, O])
}

// DictBatch is a Batch with several observations, which Spec.Observations describes.
type DictBatch[A Action] interface {
	// Reset starts an episode of environment i and writes its first observations.
	Reset(i int, rng *Rand, obs *Observed)
	// Step is like Batch's. rows.Obs is empty: obs has the rows of each observation, packed like the others, [n, obs…].
	Step(first int, rngs []Rand, rows Rows[A, uint8], obs *Observed)
}

// CompositeBatch is a Batch with several actions, as CompositeEnv.
type CompositeBatch interface {
	// Reset starts an episode of environment i and writes its first observations.
	Reset(i int, rng *Rand, obs *Observed)
	// Step is like DictBatch's. rows.Actions is empty, too: action has the rows of each, packed like the others, [n, action…].
	Step(first int, rngs []Rand, rows Rows[int32, uint8], action *Taken, obs *Observed)
}

// BatchMasker is a Batch, DictBatch or CompositeBatch that says which actions of environment i are legal; see Masker.
type BatchMasker interface {
	ActionMask(i int, legal []uint8)
}

// BatchTurnTaker is a Batch, DictBatch or CompositeBatch that says which agents of environment i act in the next step; see TurnTaker.
type BatchTurnTaker interface {
	Active(i int, acts []uint8)
}

// BatchRespawner is a Batch, DictBatch or CompositeBatch of Spec.Respawn; see Respawner. last names the environment, too.
type BatchRespawner interface {
	SetLast(last func(i, agent int))
}

// BatchParamTaker is a Batch, DictBatch or CompositeBatch that gets the reset parameters of environment i before each Reset; see
// ParamTaker.
type BatchParamTaker interface {
	SetParams(i int, params []float32)
}

// BatchSaver is a Batch, DictBatch or CompositeBatch whose environments can be saved and loaded one by one. Random streams are not part of
// their states; the caller keeps them.
type BatchSaver interface {
	AppendEnv(dst []byte, i int) ([]byte, error)
	LoadEnv(i int, data []byte) error
}

// Rows are the packed rows of some environments: actions [n, action…], observations [n, obs…], all others [n]. With several agents
// they are actions [n, agents, action…], observations [n, agents, obs…], rewards [n, agents], and so are flags where Spec.Apart or
// Spec.Respawn is set. Flags are 0 or 1. They are valid during the call only.
type Rows[A Action, O Element] struct {
	Actions               []A
	Obs                   []O
	Rewards               []float32
	Terminated, Truncated []uint8
	Discounts             []float32 // nil without a discount in the spec
	Figures               []float32 // [n, figures…]; 0 before the step
}
