package evaluation

import "math"

// Pairing is the match of two of several players, who are numbered from 0.
type Pairing struct {
	A, B  int
	Match // as A sees it
}

// eloScale is how many points make a player ten times as likely to win as another.
const eloScale = 400

// Elo rates players by their matches, which must connect all of them. Player 0 has rating 0, and a player with d points more than another is
// expected to score 1/(1+10^(-d/400)). The ratings have maximum likelihood in the model of Bradley and Terry, in which a draw is half a win
// and half a loss, with one more drawn episode in each pairing: without that prior, a player that always wins would have no finite rating.
func Elo(players int, pairings []Pairing) []float64 {
	const (
		rounds  = 100_000
		enough  = 1e-10 // change of a strength's logarithm
		virtual = 0.5   // wins of both by the prior
	)
	scored := make([]float64, players)
	for _, x := range pairings {
		scored[x.A] += float64(x.Wins) + float64(x.Draws)/2 + virtual
		scored[x.B] += float64(x.Losses) + float64(x.Draws)/2 + virtual
	}
	strength, expected := make([]float64, players), make([]float64, players)
	for i := range strength {
		strength[i] = 1
	}
	for range rounds { // Hunter, "MM algorithms for generalized Bradley-Terry models", 2004
		clear(expected)
		for _, x := range pairings {
			each := float64(x.Episodes()+1) / (strength[x.A] + strength[x.B])
			expected[x.A] += each
			expected[x.B] += each
		}
		moved := 0.0
		for i := range strength {
			if expected[i] > 0 {
				next := scored[i] / expected[i]
				moved = max(moved, math.Abs(math.Log(next/strength[i])))
				strength[i] = next
			}
		}
		if moved < enough {
			break
		}
	}
	ratings := make([]float64, players)
	for i := range ratings {
		ratings[i] = eloScale * math.Log10(strength[i]/strength[0])
	}
	return ratings
}
