package sdk_test

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk"
)

// walk is a line of cells; the episode ends at the last one.
type walk struct{ position, last int32 }

func (w *walk) Reset(rng *sdk.Rand, obs []float32) {
	w.position = int32(rng.Below(uint32(w.last)))
	obs[0] = float32(w.position)
}

func (w *walk) Step(_ *sdk.Rand, action []int32, obs []float32) sdk.Result {
	w.position += action[0]
	obs[0] = float32(w.position)
	return sdk.Result{Reward: -1, Terminated: w.position >= w.last}
}

// An environment is a type with Reset and Step. Its tests need no host.
func ExampleEnv() {
	var env sdk.Env[int32, float32] = &walk{last: 3}
	rng, obs := sdk.NewRand(1), make([]float32, 1)
	env.Reset(&rng, obs)
	for result := (sdk.Result{}); !result.Terminated; {
		result = env.Step(&rng, []int32{1}, obs)
		fmt.Println(obs, result.Reward, result.Terminated)
	}
	// Output:
	// [2] -1 false
	// [3] -1 true
}

// A specification says what actions and observations look like.
func ExampleSpec() {
	spec := sdk.Spec{Name: "walk@1", Action: sdk.Discrete(2), Obs: sdk.Box(-1, 1, 3, 4), EpisodeLimit: 100}
	fmt.Println(spec.Action.N, spec.Obs.Shape, spec.Obs.Elems())
	// Output: 2 [3 4] 12
}

// Arguments come from the pipeline file: [env.NAME] args = { length = 9 }.
func ExampleConfig() {
	config := sdk.ParseConfig("length=9\nslippery=perhaps\n")
	fmt.Println(config.Int("length", 5), config.Float("wind", 0.5), config.Bool("slippery", false))
	fmt.Println(config.Err())
	// Output:
	// 9 0.5 false
	// argument slippery: want true or false
}

// A stream of random numbers continues from its state, in every language.
func ExampleRand() {
	rng := sdk.NewRand(7)
	rng.Next()
	again := sdk.RandAt(rng.State())
	fmt.Println(rng.Below(6) == again.Below(6), rng.Uniform(-1, 1) == again.Uniform(-1, 1))
	// Output: true true
}

// Spaces describe the values of an action or an observation; several of them have names.
func ExampleSpace() {
	fmt.Println(sdk.MultiDiscrete(3, 2).Elems(), sdk.MultiBinary(4).Elems(), sdk.Image(84, 84, 3).Elems())
	gold := sdk.Box(0, 100).As("inventory/gold", sdk.Int32)
	fmt.Println(gold.Name, gold.Low, gold.High, sdk.Discrete(3).From(-1).Start)
	// Output:
	// 2 4 21168
	// inventory/gold 0 100 -1
}
