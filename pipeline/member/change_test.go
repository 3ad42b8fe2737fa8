package member

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// A host that is here and does not prepare a change is named when the time is over, and told that there is no change any more. Nobody waits for it once
// the run has ended.
func TestChange_WaitsNoLongerThanItsTime(t *testing.T) {
	g := pairs(t, 2, `"spread"`)
	over := errors.New("the run is over")
	for what, c := range map[string]struct {
		ends func(context.Context) (context.Context, context.CancelFunc)
		says string
	}{
		"its time is over": {func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 0) }, "its host, b, is here"},
		"the run is over": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, stop := context.WithCancelCause(ctx)
			stop(over)
			return ctx, func() {}
		}, over.Error()},
	} {
		a := NewAway(g, 0, slog.New(slog.DiscardHandler))
		if err := a.Check(graphtest.Standard()); err != nil {
			t.Fatal(err)
		}
		a.here("key", placement.Host{Name: "b", Slots: 4})
		a.Settle()
		if err := a.Prepare(g); err != nil {
			t.Fatal(err)
		}
		ctx, stop := c.ends(t.Context())
		_, err := runner{&source{away: a, name: "rollout[1]"}}.PrepareEnvs(ctx, component.EnvChange{})
		stop()
		var refused *pipeline.ChangeError
		if coded := errors.As(err, &refused) && refused.Code == CodeUnprepared && strings.Contains(refused.Help, "end rlhost join"); coded == errors.Is(err, over) {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
		if got, want := a.orders("key"), []order{{1, 1, stageCancel}}; !slices.Equal(got, want) {
			t.Errorf("%s: the host is told %+v, want %+v", what, got, want)
		}
	}
}

// The first instance that commits does so for all of its host's. A host that has changed them before the second one commits says so once: each is told.
func TestChange_AHostIsFasterThanALoop(t *testing.T) {
	g := pairs(t, 2, `"spread"`)
	a := NewAway(g, 0, slog.New(slog.DiscardHandler))
	if err := a.Check(graphtest.Standard()); err != nil {
		t.Fatal(err)
	}
	a.here("key", placement.Host{Name: "b", Slots: 4})
	a.Settle()
	if err := a.Prepare(g); err != nil {
		t.Fatal(err)
	}
	l, told := loop.New("owner"), make(chan string, 4)
	var all []component.PreparedEnvs
	for _, name := range []string{"rollout[0]", "rollout[1]"} {
		s := &source{away: a, name: name, h: &component.Host{Receiver: l.NewReceiver(name)}}
		f := a.farOf(name, &component.EnvChange{})
		f.ready("")
		x, err := runner{s}.PrepareEnvs(t.Context(), component.EnvChange{Went: func(component.EnvsWent) { told <- name }})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	over, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); _ = l.Run(over) }()
	defer func() { stop(); <-ran }()
	done, err := json.Marshal(changeAnswer{Number: 1, Stage: stageCommit})
	if err = errors.Join(err, all[0].Commit()); err != nil {
		t.Fatal(err)
	}
	a.answerDone(cluster.SubjectUp("key", verbDone), done)
	if name := <-told; name != "rollout[0]" {
		t.Errorf("%s is told first", name)
	}
	if err := all[1].Commit(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the second is told", func() bool { return len(told) == 1 })
	if name := <-told; name != "rollout[1]" {
		t.Errorf("%s is told", name)
	}
}
