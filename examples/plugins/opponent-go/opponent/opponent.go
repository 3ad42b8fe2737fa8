// Package opponent is a component that plays Connect Four by rules: it takes a winning move, else blocks the other's, else plays as
// near to the middle as it can.
package opponent

import (
	"slices"

	"github.com/rlhost/rlhost/sdk/component"
)

const columns, rows = 7, 6

type opponent struct {
	Policy                      string `toml:"policy"`
	obs, active, policy, action component.Column
	actions                     component.Signal
}

// New returns an unconfigured opponent.
func New() component.Component {
	c := &opponent{}
	return &component.Declared{
		Config: c, Check: func() error { return component.Require(c.Policy != "", "policy", "is missing") },
		Signals: []component.Output{{Name: "actions", Payload: "actions", Doc: "the moves have been written", Bind: &c.actions}},
		Slots: []component.Input{{Name: "act", Payload: "act_request", Doc: "boards that wait for a move", Handle: c.act,
			Columns: []component.Want{{Name: "obs", Into: &c.obs}, {Name: "active", Into: &c.active},
				{Name: "policy", Into: &c.policy, Optional: true}, {Name: "action", Into: &c.action, Write: true}}}},
	}
}

func (c *opponent) act(m *component.Message) error {
	r := component.ActRequestOf(m)
	for env := range r.Turns(c.active, c.policy) {
		b := board{c.obs.Row(r.T, env)} // of moves that are worth as much it takes the first here
		best := slices.MaxFunc([]int{3, 2, 4, 1, 5, 0, 6}, func(x, y int) int { return b.worth(x) - b.worth(y) })
		c.action.Row(r.T, env).Int32()[0] = int32(best)
	}
	return component.Pass(c.actions, m)
}

// board is the board as its player sees it: its own stones, then the other's, the lowest row first.
type board struct{ component.Column }

func (b board) stone(side, column, row int) bool {
	inside := column >= 0 && column < columns && row >= 0 && row < rows
	return inside && b.Float32()[((side*rows+row)*columns+column)*b.StrideElem] > 0
}

// run counts a side's consecutive stones in a direction, from the neighbour of a place on.
func (b board) run(side, column, row, right, up int) (n int) {
	for b.stone(side, column+(n+1)*right, row+(n+1)*up) {
		n++
	}
	return n
}

// wins says whether a stone there makes four.
func (b board) wins(side, column, row int) bool {
	return slices.ContainsFunc([][2]int{{1, 0}, {0, 1}, {1, 1}, {1, -1}}, func(d [2]int) bool {
		return b.run(side, column, row, d[0], d[1])+b.run(side, column, row, -d[0], -d[1]) >= 3
	})
}

// worth is the higher the better a stone in the column is.
func (b board) worth(column int) int {
	for row := range rows {
		switch {
		case b.stone(0, column, row) || b.stone(1, column, row):
			continue
		case b.wins(0, column, row):
			return 3
		case b.wins(1, column, row):
			return 2
		}
		return 1
	}
	return 0 // it is full
}
