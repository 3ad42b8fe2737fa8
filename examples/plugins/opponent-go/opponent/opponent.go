// Package opponent is a component that plays Connect Four by rules: it takes a winning move, else blocks the other's, else plays as
// near to the middle as it can.
package opponent

import (
	"errors"

	"github.com/rlhost/rlhost/sdk/component"
)

const columns, rows = 7, 6

type opponent struct {
	component.Stateless
	config struct {
		Policy string `toml:"policy"`
	}
	host    component.Host
	actions component.Signal
}

// New returns an unconfigured opponent.
func New() component.Component { return &opponent{} }

func (c *opponent) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "actions", Payload: "actions", Doc: "the moves have been written"}},
		Slots:   []component.Port{{Name: "act", Payload: "act_request", Doc: "boards that wait for a move"}},
	}
}

func (c *opponent) Configure(decode func(into any) error) error {
	if err := decode(&c.config); err != nil || c.config.Policy != "" {
		return err
	}
	return &component.ConfigError{Key: "policy", Reason: "is missing"}
}

func (c *opponent) Start(h component.Host) error {
	c.host, c.actions = h, h.Signal("actions")
	h.Slot("act", func(m *component.Message) {
		err := act(m)
		if err == nil {
			_, err = c.actions.Emit(*m)
		}
		if err != nil {
			h.Fail(err)
		}
	})
	return nil
}

// act writes the moves of a row.
func act(m *component.Message) error {
	r := component.ActRequestOf(m)
	if r.ValueOnly {
		return nil
	}
	obs, noObs := m.Block.Column("obs")
	active, noActive := m.Block.Column("active")
	action, noAction := m.Block.Writable("action")
	if err := errors.Join(noObs, noActive, noAction); err != nil {
		return err
	}
	policy, alone := m.Block.Column("policy")
	for i := range active.Envs {
		if active.Bytes[r.T*active.StrideT+i] != 0 && (alone != nil || policy.Bytes[r.T*policy.StrideT+i] == r.Policy) {
			action.Int32()[r.T*action.StrideT+i] = choose(board{obs, r.T*obs.StrideT + i*obs.StrideEnv})
		}
	}
	return nil
}

// board is what who plays sees: its own stones and behind them the other's, the lowest row first.
type board struct {
	obs component.Column
	at  int
}

func (b board) stone(side, column, row int) bool {
	if column < 0 || column >= columns || row < 0 || row >= rows {
		return false
	}
	return b.obs.Float32()[b.at+((side*rows+row)*columns+column)*b.obs.StrideElem] > 0
}

func (b board) wins(side, column, row int) bool {
	for _, d := range [][2]int{{1, 0}, {0, 1}, {1, 1}, {1, -1}} {
		n := 1
		for way := -1; way < 2; way += 2 {
			for k := way; b.stone(side, column+k*d[0], row+k*d[1]); k += way {
				n++
			}
		}
		if n >= 4 {
			return true
		}
	}
	return false
}

func choose(b board) (best int32) {
	worth := -1
	for _, column := range []int{3, 2, 4, 1, 5, 0, 6} {
		row, is := 0, 0
		for row < rows && (b.stone(0, column, row) || b.stone(1, column, row)) {
			row++
		}
		switch {
		case row == rows:
			is = -1
		case b.wins(0, column, row):
			is = 2
		case b.wins(1, column, row):
			is = 1
		}
		if is > worth {
			best, worth = int32(column), is
		}
	}
	return best
}
