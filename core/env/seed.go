package env

// Seed returns the seed of one environment's random stream from the run's seed and the environment's global
// index alone, so that trajectories do not depend on how environments are spread over components and splits.
// It is splitmix64 (Steele, Lea, Flood 2014) over both, so that neighbouring runs share no stream.
func Seed(run uint64, env int) uint64 {
	return mix64(mix64(run+golden) ^ mix64(uint64(env)+1)*golden)
}

// Seeds writes the seeds of consecutive environments from first on, in less time than as many calls of Seed.
func Seeds(to []uint64, run uint64, first int) {
	mixed := mix64(run + golden)
	for i := range to {
		to[i] = mix64(mixed ^ mix64(uint64(first+i)+1)*golden)
	}
}

// ActionWords writes the random words for the random actions of a run's step, one for each of consecutive environments from first on: a
// stretch of the splitmix64 stream whose seed comes from the run and the step, so that no two runs have the same actions some steps apart.
func ActionWords(to []uint64, run, step uint64, first int) {
	stream := mix64(Seed(run, -1) + step)
	for i := range to {
		to[i] = mix64(stream + uint64(first+i)*golden)
	}
}

// Stream separates random numbers drawn for other purposes than training, so that they differ even where both use
// the same seed.
type Stream uint64

// Streams other than the training's, which draws from the run's seed itself. The values come from a hash function's
// initial state: numbers unlikely as a seed.
const (
	EvaluationStream Stream = 0x6A09E667F3BCC908
	TrialStream      Stream = 0xBB67AE8584CAA73B
	OpponentStream   Stream = 0x3C6EF372FE94F82B // versions that pools of opponents draw
	StickyStream     Stream = 0xA54FF53A5F1D36F1 // whether an environment takes its previous action again
	NoopStream       Stream = 0x510E527FADE682D1 // with how many steps of action 0 an episode begins
)

// Seed returns the seed that replaces the run's in that stream, for the function Seed and for actions.
func (s Stream) Seed(seed uint64) uint64 { return mix64(seed ^ uint64(s)) }

const golden = 0x9E3779B97F4A7C15

func mix64(z uint64) uint64 {
	z += golden
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
