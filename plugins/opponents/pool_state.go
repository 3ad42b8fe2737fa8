package opponents

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
)

// savedPool is the small part of a pool's state.
type savedPool struct {
	Kept     []uint64 `json:"kept"`  // ascending
	Drawn    uint64   `json:"drawn"` // that was published, if any is kept
	Newest   uint64   `json:"newest"`
	Received uint64   `json:"received"`
	Draws    uint64   `json:"draws"`
}

// blobOf is the name of a version's blob.
func blobOf(version uint64) string { return "version" + strconv.FormatUint(version, 10) }

// Snapshot saves the kept versions, the published one, and the state of the draws.
func (p *Pool) Snapshot() (component.State, error) {
	s := savedPool{Drawn: p.drawn.number, Newest: p.newest, Received: p.received, Draws: p.draws}
	state := component.State{Blobs: map[string][]byte{}}
	for _, v := range p.kept {
		s.Kept = append(s.Kept, v.number)
		state.Blobs[blobOf(v.number)] = slices.Clone(v.weights)
	}
	if p.drawn.weights != nil {
		state.Blobs[blobOf(p.drawn.number)] = slices.Clone(p.drawn.weights)
	}
	state.Meta = s
	return state, nil
}

// Restore continues from a snapshot. Versions of another network are dropped, with a warning: the pool is then empty.
func (p *Pool) Restore(state component.State) error {
	var s savedPool
	if err := state.Decode(&s); err != nil {
		return err
	}
	if len(s.Kept) == 0 {
		return nil
	}
	if !slices.IsSorted(s.Kept) || len(s.Kept) > 1+maxKeep {
		return fmt.Errorf("saved state keeps the versions %v, want 1 to %d ascending ones", s.Kept, 1+maxKeep)
	}
	kept := make([]version, len(s.Kept))
	for i, number := range s.Kept {
		if _, err := p.saved(state, number); err != nil {
			p.h.Log.Warn("the kept versions are no longer of this network: the pool begins from scratch", "versions", s.Kept, "err", err)
			return nil
		}
		kept[i] = version{number, slices.Clone(state.Blobs[blobOf(number)])}
	}
	p.drawn = version{number: s.Drawn}
	if i := slices.IndexFunc(kept, func(v version) bool { return v.number == s.Drawn }); i >= 0 {
		p.drawn = kept[i]
	} else if _, err := p.saved(state, s.Drawn); err != nil {
		return err
	} else {
		p.drawn.weights = slices.Clone(state.Blobs[blobOf(s.Drawn)])
	}
	p.kept, p.newest, p.received, p.draws = kept, s.Newest, s.Received, s.Draws
	p.trim()
	return nil
}

// saved returns a version in a state.
func (p *Pool) saved(state component.State, number uint64) (policy.Weights, error) {
	return read(&p.format, state.Blobs[blobOf(number)], number)
}

// Versions lists the versions that a state of a pool keeps, ascending; see players.Pool.
func (*Pool) Versions(state component.State) ([]uint64, error) {
	var s savedPool
	err := state.Decode(&s)
	return s.Kept, err
}

// Drawn returns the version of a state that was published, if it keeps any; see players.Pool.
func (*Pool) Drawn(state component.State) (version uint64, ok bool, err error) {
	var s savedPool
	err = state.Decode(&s)
	return s.Drawn, len(s.Kept) > 0, err
}

// Weights returns a version of a state, which are of that network; see players.Pool.
func (*Pool) Weights(state component.State, n *policy.Network, version uint64) (policy.Weights, error) {
	format := n.Weights()
	return read(&format, state.Blobs[blobOf(version)], version)
}
