package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Trial opens the recording that has the failure of a change of a run: of its trial, or of its probation. It returns the last failure.
// The caller closes the reel.
func Trial(run *runs.Run, change uint64) (*tape.Reel, tape.Failed, error) {
	for _, dir := range []string{filepath.Join(run.Dir, runs.TrialsFolder, strconv.FormatUint(change, 10)), filepath.Join(run.Dir, runs.RecordingFolder)} {
		reel, failed, err := failureIn(dir, change)
		if err != nil || reel != nil {
			return reel, failed, err
		}
	}
	e := none(run, fmt.Sprintf("no failure of change %d is recorded", change), "rlhost history "+run.ID()+" lists the changes; a trial that fails is kept, the newest 8 of a run; what fails later is kept where run.record says so")
	return nil, tape.Failed{}, e
}

// failureIn opens a recording if it has the failure of a change.
func failureIn(dir string, change uint64) (*tape.Reel, tape.Failed, error) {
	reel, err := tape.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tape.Failed{}, nil
	}
	if err != nil {
		return nil, tape.Failed{}, err
	}
	for _, f := range slices.Backward(reel.Failures()) {
		if f.Of.Change == change {
			return reel, f, nil
		}
	}
	return nil, tape.Failed{}, reel.Close()
}

// OpenFailed goes to the beginning of the episode in which environments have failed, or to where their version of the environment began, if
// that is later. The episode is over with the call that fails, and Fault is its error. Where the run does not know which environment failed,
// it is the episode of the first one. The caller closes the episode; the reel stays open meanwhile.
func OpenFailed(reel *tape.Reel, f tape.Failed, load Load) (*Episode, error) {
	x := &Episode{reel: reel, load: load, failed: &f}
	x.Told = tape.Told{Of: f.Of, At: f.At, Episode: tape.Episode{Env: uint32(max(f.Env, f.Of.First))}}
	x.stretches = []stretch{{f.Of, x.earliest(), f.At}}
	err := x.open(f.Of)
	if err == nil {
		err = x.findFailed()
	}
	if err == nil {
		err = x.rewind()
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// earliest is the first position from which the failed episode can be played. The run has noted the ends of episodes up to the last block that
// was whole.
func (x *Episode) earliest() (from uint64) {
	f := x.failed
	anew := !f.Of.Whole
	for i := range f.Of.Records {
		switch r := &f.Of.Records[i]; {
		case r.At < f.At && r.Kind == tape.Lost:
			anew = true
		case r.At < f.At && anew && starts(r.Kind):
			from, anew = r.At, false
		}
	}
	for _, e := range x.reel.Episodes() {
		if e.Of == f.Of && e.Env == x.Told.Env && e.At < f.At {
			from = max(from, e.At)
		}
	}
	return from
}

// findFailed finds where the episode begins.
func (x *Episode) findFailed() error {
	p, s := x.player, &x.stretches[0]
	err := p.seek(s.from)
	begun := &p.begun[int(x.Told.Env)-s.track.First]
	*begun = s.from
	for err == nil && p.at+1 < s.to {
		err = p.step()
	}
	if s.from = *begun; isFault(err) { // earlier than in the run, which playing it says
		return nil
	}
	return err
}

// isFault reports whether an error is the environments' own.
func isFault(err error) bool {
	var fault *env.Fault
	var output *env.OutputError
	return errors.As(err, &fault) || errors.As(err, &output)
}

// fails takes in an error of the environments, or that there is none where they have failed in the run.
func (x *Episode) fails(err error) error {
	end := err == nil || errors.Is(err, errEnd) || errors.Is(err, ErrGone) && x.player.at == x.Told.At
	switch {
	case x.failed == nil:
		return err
	case isFault(err):
		x.Over, x.Fault, x.first = true, err, nil // the environments may be of no use any more
		if !strings.Contains(err.Error(), x.failed.Reason) {
			return fmt.Errorf("%w: %w; in the run it was %s", ErrDiffers, err, x.failed.Reason)
		}
		return nil
	case end:
		x.Over = true
		return fmt.Errorf("%w: in the run it failed after %d env steps, %s; now it does not", ErrDiffers, x.made, x.failed.Reason)
	}
	return err
}
