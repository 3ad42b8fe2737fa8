package ppo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/reduce"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/internal/testkit"
)

// remembers returns a small network with a core.
func remembers(chunk int) policy.Network {
	n := policy.MLP{Obs: 5, Actions: 3, Hidden: []int{16}, Activation: policy.Tanh, Core: &policy.Core{Kind: policy.CoreGRU, Size: 16}}.Network()
	n.Chunk = chunk
	return n
}

// pareto draws the lengths of episodes: most are short, and a few are as long as a block. Their distribution has an infinite variance.
func pareto(r *rand.Rand, episodes, shortest, longest int) (lengths []int) {
	for range episodes {
		lengths = append(lengths, min(longest, int(math.Ceil(float64(shortest)*math.Pow(1-r.Float64(), -1/1.2)))))
	}
	return lengths
}

// wholeEpisodes makes each column of a dataset one episode of a length, with padding behind it.
func wholeEpisodes(d *policy.Dataset, lengths []int) {
	width := d.BlockEnvs()
	for i, length := range lengths {
		b, e := d.Blocks[i/width], i%width
		for t := range d.Steps() {
			at := t*width + e
			b.Bytes(trajectory.Truncated)[at] = 0
			b.Bytes(trajectory.Terminated)[at], b.Bytes(trajectory.Valid)[at] = 0, 0
			if t < length {
				b.Bytes(trajectory.Valid)[at] = 1
			} else {
				b.Float32(trajectory.Reward)[at] = 0
			}
			if t == length-1 {
				b.Bytes(trajectory.Terminated)[at] = 1
			}
			if ages := b.Ages(t); ages != nil {
				ages[e] = byte(min(t, math.MaxUint8))
			}
		}
	}
}

// shares is an engine that computes nothing, and notes how large the largest share of a step is, as a multiple of the mean, by the number of
// learners.
type shares struct {
	ppo.Engine
	t       *testing.T
	network *policy.Network
	round   *ppo.Round
	rows    []uint32
	dealt   map[int]float64
	even    map[int]float64 // where all shares have as many chunks
}

func (s *shares) Begin(r *ppo.Round)         { s.round = r }
func (s *shares) Target()                    {}
func (s *shares) Epoch(rows []uint32)        { s.rows = rows }
func (s *shares) Finish() (ppo.Stats, error) { return ppo.Stats{}, nil }

func (s *shares) Step(lo int, ends []int) {
	rows := s.rows[lo:ends[0]]
	starts := s.round.Dataset.ChunkStarts(s.network, rows, nil)
	for _, learners := range []int{2, 3, 4, 8} {
		team, mean := reduce.New(learners), float64(len(rows))/float64(learners)
		var all []uint32
		chunks := 0
		for i := range learners {
			h := ppo.Host{Round: s.round, Seat: team.Seat(i)}
			share := h.Share(s.network, rows)
			all, chunks = append(all, share...), chunks+len(s.round.Dataset.ChunkStarts(s.network, share, nil))-1
			s.dealt[learners] = max(s.dealt[learners], float64(len(share))/mean)
			first, end := reduce.Share(len(starts)-1, i, learners)
			s.even[learners] = max(s.even[learners], float64(starts[end]-starts[first])/mean)
		}
		slices.Sort(all)
		if !slices.Equal(all, slices.Sorted(slices.Values(rows))) || chunks != len(starts)-1 {
			s.t.Fatalf("%d learners share %d rows in %d chunks, of %d in %d", learners, len(all), chunks, len(rows), len(starts)-1)
		}
	}
}

// Shares of whole chunks have about as many rows each, although most episodes end soon and a few are long.
func TestShare_OfEpisodesOfAllLengths(t *testing.T) {
	n, random := remembers(16), testkit.Random(t)
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 128, Envs: 64, Blocks: 4, Seed: random.Uint64()})
	wholeEpisodes(d, pareto(random, 256, 4, 128))
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 10, 1024
	s := &shares{t: t, network: &n, dealt: map[int]float64{}, even: map[int]float64{}}
	l, err := ppo.Over(s, &n, n.Params(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Update(d, teamRates); err != nil {
		t.Fatal(err)
	}
	for _, learners := range []int{2, 3, 4, 8} {
		dealt, even := s.dealt[learners], s.even[learners]
		t.Logf("%d learners: the largest share of all steps is %.3f of the mean; with as many chunks each %.3f", learners, dealt, even)
		if dealt > 1.1 || dealt >= even {
			t.Errorf("%d learners: the largest share is %.3f of the mean, and would be %.3f with as many chunks each", learners, dealt, even)
		}
	}
}

// Learners that share episodes of all lengths have the same bits, and the parameters of one learner but for rounding.
func TestTeam_LearnsFromEpisodesOfAllLengths(t *testing.T) {
	n, random := remembers(8), testkit.Random(t)
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 32, Envs: 16, Blocks: 2, Seed: random.Uint64()})
	wholeEpisodes(d, pareto(random, 32, 2, 32))
	params := policy.Init(&n, 1)
	a, err := policy.NewActor(cpu.New(), &n, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Load(policy.Weights{Params: params}); err != nil {
		t.Fatal(err)
	}
	policytest.Act(t, &n, a, d, 16)
	var alone []float32
	for learners := 1; learners <= 4; learners++ {
		c := ppo.Defaults()
		c.Epochs, c.Minibatch, c.Learners, c.VTrace = 2, 64, learners, true
		b := &watched{Backend: cpu.New()}
		l, err := ppo.NewLearner(b, &n, params, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Update(d, teamRates); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, n.ParamCount())
		if err := l.Params(got); err != nil {
			t.Fatal(err)
		}
		if learners == 1 {
			alone = got
		} else {
			b.same(t)
		}
		for i := range got {
			if math.Abs(float64(got[i]-alone[i])) > 1e-4 {
				t.Errorf("%d learners: parameter %d is %v, and %v with one", learners, i, got[i], alone[i])
				break
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Padding costs nothing: an update reads the observations of valid rows alone, for V-trace and for its epochs.
func TestUpdate_ReadsNoPadding(t *testing.T) {
	random := testkit.Random(t)
	for name, n := range map[string]policy.Network{
		"row by row": policy.MLP{Obs: 5, Actions: 3, Hidden: []int{16}, Activation: policy.Tanh}.Network(), "in chunks": remembers(8),
	} {
		d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 32, Envs: 16, Blocks: 2, Seed: random.Uint64()})
		lengths := pareto(random, 32, 2, 32)
		wholeEpisodes(d, lengths)
		valid := 0
		for _, length := range lengths {
			valid += length
		}
		for learners := 1; learners <= 3; learners++ {
			c := ppo.Defaults()
			c.Epochs, c.Minibatch, c.Learners, c.VTrace = 2, 64, learners, true
			l, err := ppo.NewLearner(cpu.New(), &n, policy.Init(&n, 1), c)
			if err != nil {
				t.Fatal(err)
			}
			stats, err := l.Update(d, teamRates)
			if err != nil {
				t.Fatal(err)
			}
			if want := uint64(4 * n.Obs() * valid * (1 + c.Epochs)); stats.Gathered != want {
				t.Errorf("%s, %d learners: %d bytes of observations were read, want %d of %d valid rows", name, learners, stats.Gathered, want, valid)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
