package arena

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// Shared is what another process needs to attach to an arena.
type Shared struct {
	ID         uint8
	Name       string
	Blocks     int
	BlockBytes int
	ReadOnly   bool   // the blocks can be mapped for reading alone
	WordsFD    int    // file of the words, -1 if there is none
	DataFD     int    // file of the blocks, -1 if there is none
	Schema     Schema // as configured, in this process
}

// Share returns what another process needs to attach. The files belong to the arena and are valid as long as it is:
// send duplicates, or send them before Close. At the host it also rewrites the description in the words, because a
// process that attached before may have damaged it.
func (a *Arena) Share() Shared {
	if a.host() {
		a.view.describe(a.layout, a.config.ID, a.first)
	}
	return Shared{
		ID: a.config.ID, Name: a.config.Name, Blocks: a.layout.blocks, BlockBytes: a.layout.blockBytes,
		ReadOnly: a.config.ReadOnly, WordsFD: a.words.FD(), DataFD: a.data.FD(), Schema: a.config.Schema,
	}
}

// Attach maps an arena that the host has shared, in a process that the host knows by that holder number, 1 to 23. It takes ownership of the
// two files, also on an error. Every size is checked against the files and against the description; ErrLayout if they disagree, or an error of
// shm.Open. A process attaches to an arena once: two views would end each other's claims. Closing the arena ends the view and nothing else.
func Attach(s Shared, holder int) (*Arena, error) {
	words, data, err := openShared(s)
	if err != nil {
		return nil, fmt.Errorf("attach arena %q: %w", s.Name, err)
	}
	a, err := viewShared(s, holder, words, data)
	if err != nil {
		return nil, fmt.Errorf("attach arena %q: %w", s.Name, errors.Join(err, words.Close(), data.Close()))
	}
	return a, nil
}

// openShared opens both files, or closes both.
func openShared(s Shared) (words, data *shm.Segment, err error) {
	words, err = shm.Open(s.WordsFD, shm.ReadWrite)
	if s.DataFD == s.WordsFD {
		if err == nil {
			err = words.Close()
		}
		return nil, nil, errors.Join(fmt.Errorf("%w: words and blocks in one file", ErrLayout), err)
	}
	access := shm.ReadWrite
	if s.ReadOnly {
		access = shm.ReadOnly
	}
	data, dataErr := shm.Open(s.DataFD, access)
	if err == nil && dataErr == nil {
		return words, data, nil
	}
	if words != nil {
		err = words.Close()
	}
	if data != nil {
		dataErr = data.Close()
	}
	return nil, nil, errors.Join(err, dataErr)
}

func viewShared(s Shared, holder int, words, data *shm.Segment) (*Arena, error) {
	if holder < 1 || holder > hostabi.MaxHolder {
		return nil, fmt.Errorf("holder %d: must be between 1 and %d", holder, hostabi.MaxHolder)
	}
	l, err := planLayout(s.Blocks, s.BlockBytes)
	if err != nil {
		return nil, err
	}
	if words.Size() != l.words || data.Size() != l.data {
		return nil, fmt.Errorf("%w: files of %d and %d bytes, announced were %d and %d",
			ErrLayout, words.Size(), data.Size(), l.words, l.data)
	}
	if err := viewOf(words.Bytes(), l).checkDescribed(l, s.ID); err != nil {
		return nil, err
	}
	c := Config{ID: s.ID, Name: s.Name, Blocks: s.Blocks, BlockBytes: s.BlockBytes, Schema: s.Schema, ReadOnly: s.ReadOnly}
	return over(words, data, c, l, holder), nil
}
