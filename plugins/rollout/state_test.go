package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// A change that keeps the episodes keeps the policy's states of them; other episodes begin from nothing. The world checks
// each state against the observation. Here an episode has 5 steps, blocks have 4, and the change is asked for in row 2.
func TestS19ChangesKeepTheStateOrBeginWithoutOne(t *testing.T) {
	for at, want := range map[component.Boundary]struct{ kept, begun []byte }{
		component.AtNow:        {[]byte{0, 1, 2, 2, 3, 4, 0, 1}, []byte{0, 1, 2, 0, 1, 2, 3, 4}},
		component.AtStep:       {[]byte{0, 1, 2, 3, 4, 0, 1, 2}, []byte{0, 1, 2, 0, 1, 2, 3, 4}},
		component.AtTrajectory: {[]byte{0, 1, 2, 3, 4, 0, 1, 2}, []byte{0, 1, 2, 3, 0, 1, 2, 3}},
		component.AtEpisode:    {[]byte{0, 1, 2, 3, 4, 0, 1, 2}, []byte{0, 1, 2, 3, 4, 0, 1, 2}},
	} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.Disabled} {
			for _, keep := range []bool{false, true} {
				w := newWorld(t, worldOptions{mode: mode})
				w.inRow(0, 2)
				w.change(2, component.EnvChange{At: at, KeepState: keep})
				w.run(func() bool { return len(w.ages) >= 8 })
				ages := want.begun
				if keep {
					ages = want.kept
				}
				if !slices.Equal(w.ages[:8], ages) {
					t.Errorf("%v, %v, keeping %v: ages %v, want %v", at, mode, keep, w.ages[:8], ages)
				}
				w.balance()
			}
		}
	}
}

// Environments continue where they were from a state without policy states, or with another policy's, and the policy begins from nothing.
func TestS19AnotherMemoryBeginsFromNothing(t *testing.T) {
	for _, was := range []trajectory.Memory{{}, {State: 2, Chunk: 2}, {State: 5, Chunk: 4, Past: 1}} {
		saved := stall(t, newRig(t, rigOptions{memory: was}))
		for _, is := range []trajectory.Memory{{}, {State: 2, Chunk: 4}, {State: 3}, {Past: 2}} {
			r := newRig(t, rigOptions{memory: is})
			if err := r.c.Restore(saved); err != nil {
				t.Fatalf("from %+v to %+v: %v", was, is, err)
			}
			r.silent = true
			r.MustSettle()
			same := was.State == is.State && was.Past == is.Past
			told := fmt.Sprintf("policies begin from scratch in the episodes that continue: what was kept of these is for other ones\" component=rollout kept_rows=%d kept_numbers=%d rows=%d numbers=%d", was.Past, was.State, is.Past, is.State)
			if want := !same && was != (trajectory.Memory{}); strings.Contains(r.Log.String(), told) != want {
				t.Errorf("from %+v to %+v: log %s, want it to say so: %t", was, is, r.Log.String(), want)
			}
			for _, s := range r.c.splits {
				for env := range s.rows.n {
					if step := obsOf(s.rows.tr, trajectory.Obs, 0, env)[plugintest.ObsStep]; step != 8 {
						t.Errorf("from %+v to %+v: environment %d goes on at step %v, want 8", was, is, env, step)
					}
					if ages := s.rows.tr.Ages(0); ages != nil && (ages[env] == 0) == same {
						t.Errorf("from %+v to %+v: environment %d goes on at age %d", was, is, env, ages[env])
					}
				}
			}
		}
	}
}

// A continued run begins the blocks under way in their old order: others rely on the order of blocks.
func TestSnapshot_KeepsTheOrderOfBlocks(t *testing.T) {
	r := newRig(t, rigOptions{run: component.Run{Synchronous: true}})
	r.silent = true
	r.MustSettle()
	first, second := r.c.splits[0], r.c.splits[1]
	first.turn, second.turn = second.turn, first.turn
	saved, err := r.c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := newRig(t, rigOptions{run: component.Run{Synchronous: true}})
	next.silent = true
	if err := next.c.Restore(saved); err != nil {
		t.Fatal(err)
	}
	next.MustSettle()
	if len(next.asked) != 2 || next.asked[0].Split != 1 || next.asked[1].Split != 0 {
		t.Errorf("requests %v, want those of split 1 first", next.asked)
	}
}

// Actions that wait for the component are no part of a state: a continued run would ask a newer policy.
func TestSnapshot_IsNoneWhileAnswersWait(t *testing.T) {
	r := newRig(t, rigOptions{run: component.Run{Synchronous: true}})
	r.silent = true
	r.MustSettle()
	if _, err := r.c.Snapshot(); err != nil {
		t.Fatal(err)
	}
	r.answer(r.asked[0])
	if _, err := r.c.Snapshot(); !errors.Is(err, component.ErrNoSnapshot) {
		t.Errorf("%v, want ErrNoSnapshot", err)
	}
}
