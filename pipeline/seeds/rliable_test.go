package seeds

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
)

// TestPeers_FiguresAreThoseOfRliable gives rliable the scores and the resamples that Summarize and Improvement draw: every
// figure and both ends of every interval are the same. RLHOST_PEERS names a Python that has the package.
func TestPeers_FiguresAreThoseOfRliable(t *testing.T) {
	t.Parallel()
	python := os.Getenv("RLHOST_PEERS")
	if python == "" {
		t.Skip("RLHOST_PEERS is not set: make test-peers")
	}
	for _, shape := range []struct{ tasks, seeds, others int }{{1, 10, 10}, {1, 3, 7}, {5, 10, 4}, {4, 1, 2}, {2, 33, 10}} {
		x, y := randomScores(shape.tasks, shape.seeds, 1), randomScores(shape.tasks, shape.others, 2)
		o := Options{Resamples: 300, Seed: 7, Confidence: 0.95}
		given, err := json.Marshal(map[string]any{
			"scores": x, "draws": indices(shape.tasks, shape.seeds, o.Resamples, o.Seed),
			"other": y, "other_draws": indices(shape.tasks, shape.others, o.Resamples, o.Seed+1),
		})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(python, "testdata/peer.py")
		c.Stdin, c.Stderr = bytes.NewReader(given), os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		var theirs map[string][3]float64
		if err := json.Unmarshal(out, &theirs); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s := Summary{Mean: point(Mean(x)), Median: point(Median(x)), IQM: point(IQM(x))}
		s.bootstrap(x, o)
		median := "median"
		if shape.tasks == 1 {
			median = "median_of_seeds"
		}
		for name, ours := range map[string]Estimate{"mean": s.Mean, median: s.Median, "iqm": s.IQM, "improvement": Improvement(x, y, o)} {
			for i, v := range []float64{ours.Value, ours.Low, ours.High} {
				if want := theirs[name][i]; math.Abs(v-want) > 1e-9*max(1, math.Abs(want)) {
					t.Errorf("%+v: %s[%d] is %v, rliable says %v", shape, name, i, v, want)
				}
			}
		}
	}
}

// randomScores repeats values, so that there are ties.
func randomScores(tasks, seeds int, seed uint64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(tasks*seeds)))
	scores := make([][]float64, tasks)
	for i := range scores {
		for range seeds {
			scores[i] = append(scores[i], float64(r.IntN(40))*12.5+float64(seed))
		}
	}
	return scores
}

// indices returns which scores a resampler draws: [resample][task][seed].
func indices(tasks, seeds, resamples int, seed uint64) [][][]float64 {
	numbers := make([][]float64, tasks)
	for i := range numbers {
		for j := range seeds {
			numbers[i] = append(numbers[i], float64(j))
		}
	}
	resample := newResampler(numbers, seed)
	drawn := make([][][]float64, resamples)
	for i := range drawn {
		for _, task := range resample() {
			drawn[i] = append(drawn[i], append([]float64(nil), task...))
		}
	}
	return drawn
}
