package rollout

import (
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// Episodes say which task they were played for, also after a return, which may come when all have gone over.
func TestChange_EpisodesTellTheirTask(t *testing.T) {
	w := newWorld(t, worldOptions{splits: 2})
	tasks := map[uint16]int{}
	w.From("episodes", func(m *hostabi.Message) {
		e := trajectory.EpisodeOf(m)
		tasks[e.Task]++
		w.onEpisode(e)
	})
	expect := func(what string, task uint16) {
		t.Helper()
		clear(tasks)
		w.more(4)
		clear(tasks) // blocks that were begun before
		w.run(func() bool { return len(tasks) > 0 })
		if len(tasks) != 1 || tasks[task] == 0 {
			t.Errorf("%s: episodes of tasks %v, want %d", what, tasks, task)
		}
	}
	expect("at first", 0)
	p := w.change(2, component.EnvChange{At: component.AtStep, Task: 1, TaskBack: 2, Probation: true})
	expect("behind a change", 1)
	for i, s := range w.c.splits {
		w.gaps[[2]uint64{uint64(i), s.sequence}] = true
	}
	p.Cancel()
	expect("back", 2)
	if v := w.c.splits[1].batch.version; v != w.c.known.of(w.plugins[1].Hash()) {
		t.Error("after Cancel the environments are not the previous ones")
	}
	w.change(3, component.EnvChange{At: component.AtTrajectory, Task: 3})
	expect("behind another", 3)
}
