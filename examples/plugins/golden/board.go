package golden

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// BoardEpisode is part of a game on a board, as record_minatar.py has recorded it.
type BoardEpisode struct {
	First []int32 // the state that it begins in; see record_minatar.py
	Steps []BoardStep
}

// BoardStep is one action and what followed from it.
type BoardStep struct {
	Action             int32
	Reward, Terminated uint8
	Cells              []uint8 // the observation, 0 or 1 for each cell of each plane
}

// MinAtarBreakout returns recorded games of MinAtar's Breakout, without sticky actions.
func MinAtarBreakout() ([]BoardEpisode, error) { return readBoards("breakout.board") }

// MinAtarFreeway returns recorded games of MinAtar's Freeway, without sticky actions. An episode ends at the first reward.
func MinAtarFreeway() ([]BoardEpisode, error) { return readBoards("freeway.board") }

func readBoards(file string) ([]BoardEpisode, error) {
	data, err := traces.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("golden boards: %w", err)
	}
	r := bytes.NewReader(data)
	var head struct{ Episodes, State, Cells uint32 }
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return nil, fmt.Errorf("golden boards %s: %w", file, err)
	}
	episodes := make([]BoardEpisode, head.Episodes)
	for i := range episodes {
		if err := episodes[i].read(r, head.State, head.Cells); err != nil {
			return nil, fmt.Errorf("golden boards %s: episode %d: %w", file, i, err)
		}
	}
	if r.Len() != 0 {
		return nil, fmt.Errorf("golden boards %s: %w", file, errTrace)
	}
	return episodes, nil
}

func (e *BoardEpisode) read(r *bytes.Reader, state, cells uint32) error {
	var steps uint32
	if err := binary.Read(r, binary.LittleEndian, &steps); err != nil {
		return err
	}
	e.First = make([]int32, state)
	if err := binary.Read(r, binary.LittleEndian, e.First); err != nil {
		return err
	}
	for range steps {
		var head [3]uint8
		packed := make([]uint8, (cells+7)/8)
		for _, part := range []any{&head, packed} {
			if err := binary.Read(r, binary.LittleEndian, part); err != nil {
				return err
			}
		}
		s := BoardStep{Action: int32(head[0]), Reward: head[1], Terminated: head[2], Cells: make([]uint8, cells)}
		for i := range s.Cells {
			s.Cells[i] = packed[i/8] >> (7 - i%8) & 1
		}
		e.Steps = append(e.Steps, s)
	}
	return nil
}
