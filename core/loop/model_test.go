package loop_test

import "slices"

// model is a naive loop. A loop must be indistinguishable from it.
type model struct {
	journalled
	receivers       []*modelReceiver
	control, urgent []entry // posted, and being handled
	data            []entry
	ready           []*modelReceiver
}

type modelReceiver struct {
	paused, held    int
	closed          bool
	backlog, urgent []entry
}

// entry is a queued message; by its kind also the end of a Hold, or of a Pause.
type entry struct {
	r    *modelReceiver
	kind entryKind
	id   int
	do   func(world)
}

type entryKind uint8

const (
	message entryKind = iota
	release
	resume
)

func newModel(receivers int) *model {
	w := &model{}
	for range receivers {
		w.receivers = append(w.receivers, &modelReceiver{})
	}
	return w
}

func (w *model) run(step func(world)) {
	w.control = append(w.control, entry{r: &modelReceiver{}, do: step, id: -1})
	for {
		w.urgent, w.control = w.control, nil
		for len(w.urgent) > 0 {
			e := w.urgent[0]
			w.urgent = w.urgent[1:]
			if e.r.held > 0 && e.kind != release {
				e.r.urgent = append(e.r.urgent, e)
				continue
			}
			w.handle(e)
		}
		if !w.one() && len(w.control) == 0 {
			return
		}
	}
}

func (w *model) handle(e entry) {
	switch e.kind {
	case resume:
		w.resumed(e.r)
	case release:
		w.released(e.r)
	default:
		w.handled(e.id)
		e.do(w)
	}
}

func (w *model) resumed(r *modelReceiver) {
	if len(r.backlog) > 0 && !slices.Contains(w.ready, r) {
		w.ready = append(w.ready, r)
	}
}

func (w *model) released(r *modelReceiver) {
	if r.held == 0 {
		return
	}
	r.held--
	for len(r.urgent) > 0 && r.held == 0 {
		e := r.urgent[0]
		r.urgent = r.urgent[1:]
		w.handle(e)
	}
	if r.held == 0 {
		w.resumed(r)
	}
}

// one handles one data message.
func (w *model) one() bool {
	for len(w.ready) > 0 {
		r := w.ready[0]
		if len(r.backlog) > 0 && r.held == 0 && r.paused <= 0 {
			e := r.backlog[0]
			r.backlog = r.backlog[1:]
			w.handle(e)
			return true
		}
		w.ready = w.ready[1:]
	}
	if len(w.data) == 0 {
		return false
	}
	e := w.data[0]
	w.data = w.data[1:]
	if r := e.r; r.paused > 0 || r.held > 0 || len(r.backlog) > 0 {
		r.backlog = append(r.backlog, e)
		return true
	}
	w.handle(e)
	return true
}

func (w *model) post(i, id int, do func(world)) {
	if r := w.receivers[i]; !r.closed {
		w.data = append(w.data, entry{r: r, id: id, do: do})
	}
}

func (w *model) postControl(i, id int, do func(world)) {
	if r := w.receivers[i]; !r.closed {
		w.control = append(w.control, entry{r: r, id: id, do: do})
	}
}

func (w *model) pause(i int) { w.receivers[i].paused++ }
func (w *model) hold(i int)  { w.receivers[i].held++ }

func (w *model) resume(i int) {
	r := w.receivers[i]
	if r.paused--; r.paused == 0 && r.held == 0 && !r.closed {
		w.control = append(w.control, entry{r: r, kind: resume})
	}
}

func (w *model) release(i int) {
	w.control = append(w.control, entry{r: w.receivers[i], kind: release})
}

func (w *model) close(i int) {
	r := w.receivers[i]
	r.closed = true
	every := func(e entry) bool { return e.kind != release }
	for _, e := range slices.Concat(takeOut(r, every, &r.urgent, &w.urgent, &w.control), takeOut(r, every, &r.backlog, &w.data)) {
		if e.kind == message {
			w.dropped(e.id)
		}
	}
	w.ready = slices.DeleteFunc(w.ready, func(o *modelReceiver) bool { return o == r })
}

func (w *model) requeue(i, to int) {
	r := w.receivers[i]
	for _, e := range takeOut(r, func(e entry) bool { return e.kind == message }, &r.backlog, &w.data) {
		e.r = w.receivers[to]
		if e.r.closed {
			w.dropped(e.id)
			continue
		}
		w.data = append(w.data, e)
	}
}

func takeOut(r *modelReceiver, match func(entry) bool, lists ...*[]entry) (out []entry) {
	for _, list := range lists {
		*list = slices.DeleteFunc(slices.Clone(*list), func(e entry) bool {
			is := e.r == r && match(e)
			if is {
				out = append(out, e)
			}
			return is
		})
	}
	return out
}

func (w *model) counts() (counts []int) {
	for _, r := range w.receivers {
		counts = append(counts, max(r.paused, 0), r.held)
	}
	return counts
}
