package evaluation

import (
	"math"
	"testing"
)

func pairing(a, b, wins, draws, losses int) Pairing {
	return Pairing{A: a, B: b, Match: Match{Wins: wins, Draws: draws, Losses: losses}}
}

// Worked by hand: with the drawn episode of the prior, 3 wins, 2 draws and 1 loss are 4.5 of 7.
func TestElo_AreWhatOneWorksOutByHand(t *testing.T) {
	apart := func(scored, of float64) float64 { return 400 * math.Log10(scored/(of-scored)) }
	for name, c := range map[string]struct {
		players  int
		pairings []Pairing
		want     []float64
	}{
		"two":               {2, []Pairing{pairing(1, 0, 3, 2, 1)}, []float64{0, apart(4.5, 7)}}, // 102.11
		"an even match":     {2, []Pairing{pairing(0, 1, 5, 7, 5)}, []float64{0, 0}},
		"never defeated":    {2, []Pairing{pairing(1, 0, 100, 0, 0)}, []float64{0, apart(100.5, 101)}}, // 921
		"one after another": {3, []Pairing{pairing(1, 0, 3, 2, 1), pairing(2, 1, 9, 0, 1)}, []float64{0, apart(4.5, 7), apart(4.5, 7) + apart(9.5, 11)}},
		// Each beats the next as often: none is ahead.
		"in a circle": {3, []Pairing{pairing(0, 1, 8, 0, 2), pairing(1, 2, 8, 0, 2), pairing(2, 0, 8, 0, 2)}, []float64{0, 0, 0}},
		// Scores of 2/3, 4/5 and 2/3 of 15 episodes, the prior's included, follow from strengths 1, 2 and 4.
		"as the model has it": {3, []Pairing{pairing(1, 0, 9, 1, 4), pairing(2, 0, 11, 1, 2), pairing(2, 1, 9, 1, 4)},
			[]float64{0, 400 * math.Log10(2), 400 * math.Log10(4)}},
		"alone": {1, nil, []float64{0}},
	} {
		got := Elo(c.players, c.pairings)
		for i, want := range c.want {
			if math.Abs(got[i]-want) > 1e-4 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
	if got := apart(4.5, 7); math.Abs(got-102.11) > 0.01 {
		t.Errorf("3 wins, 2 draws and 1 loss are %.2f points", got)
	}
}

// At the maximum of the likelihood each player's score equals the score that its rating predicts.
func TestElo_PredictsTheScores(t *testing.T) {
	pairings := []Pairing{pairing(0, 1, 40, 3, 7), pairing(0, 2, 1, 0, 49), pairing(0, 3, 0, 0, 50), pairing(1, 2, 12, 20, 18),
		pairing(1, 3, 3, 3, 44), pairing(2, 3, 30, 0, 20)}
	ratings := Elo(4, pairings)
	var scored, expected [4]float64
	for _, x := range pairings {
		n, p := float64(x.Episodes()+1), 1/(1+math.Pow(10, (ratings[x.B]-ratings[x.A])/400))
		own := float64(x.Wins) + float64(x.Draws)/2 + 0.5
		scored[x.A], scored[x.B] = scored[x.A]+own, scored[x.B]+n-own
		expected[x.A], expected[x.B] = expected[x.A]+n*p, expected[x.B]+n*(1-p)
	}
	for i := range scored {
		if math.Abs(scored[i]-expected[i]) > 1e-5 {
			t.Errorf("player %d of %.1f points scored %g, expected %g", i, ratings[i], scored[i], expected[i])
		}
	}
}
