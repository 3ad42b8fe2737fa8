package cluster

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rlhost/rlhost/core/registry"
)

// retry is how long a watch waits before it asks a server again that has refused it.
const retry = 100 * time.Millisecond

// Watch tells what there is, then changes, across lost connections and lives of the server. See registry.Names.
func (n *Names) Watch(ctx context.Context, root string) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		if err := registry.CheckRoot(root); err != nil {
			yield(registry.Event{}, err)
			return
		}
		w := &watch{names: n, root: root, yield: yield, known: map[string]registry.Lease{}}
		for w.listen(ctx) {
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
		}
	}
}

// watch is what one Watch has told.
type watch struct {
	names  *Names
	root   string
	yield  func(registry.Event, error) bool
	known  map[string]registry.Lease // by names that have a value
	listed bool
}

// listen tells events until the link has connected again or the server ends it, and then returns true. It returns false once nobody listens.
func (w *watch) listen(ctx context.Context) bool {
	again := w.names.link.connects()
	watcher, err := w.open(ctx)
	switch {
	case ctx.Err() != nil:
		w.yield(registry.Event{}, context.Cause(ctx))
		return false
	case err != nil:
		return w.failed(err)
	}
	defer func() { _ = watcher.Stop() }() // it fails where the connection is gone, and with it the watcher
	present := map[string]bool{}          // what the server has said of names: whether they have a value
	for {
		select {
		case <-ctx.Done():
			w.yield(registry.Event{}, context.Cause(ctx))
			return false
		case <-again:
			return true
		case e, open := <-watcher.Updates():
			switch {
			case !open:
				return true
			case e != nil && !w.tell(e, present):
				return false
			case e != nil:
				continue
			}
			if goes, err := w.tellLeftOut(ctx, present); err != nil {
				return w.failed(err)
			} else if !goes || !w.list(present) {
				return false
			}
		}
	}
}

// failed ends a watch that has not listed yet with an error. A later one is tried again: then it returns true.
func (w *watch) failed(err error) bool {
	if !w.listed {
		w.yield(registry.Event{}, err)
	}
	return w.listed
}

func (w *watch) open(ctx context.Context) (watcher jetstream.KeyWatcher, err error) {
	err = w.names.in(ctx, func(kv jetstream.KeyValue) error {
		watcher, err = kv.WatchFiltered(ctx, filters(w.root))
		return err
	})
	return watcher, err
}

// tell tells what has happened to a name. A renewed one has its former lease, and nothing has happened to it.
func (w *watch) tell(e jetstream.KeyValueEntry, present map[string]bool) bool {
	name, ok := nameOf(e.Key())
	if !ok {
		return true
	}
	if e.Operation() != jetstream.KeyValuePut {
		present[name] = false
		return w.deleted(name)
	}
	it, ok := itemOf(e)
	if !ok {
		return true
	}
	return w.set(name, it, present)
}

func (w *watch) set(name string, it item, present map[string]bool) bool {
	present[name] = true
	if w.known[name] == it.lease {
		return true
	}
	w.known[name] = it.lease
	return w.yield(registry.Event{Kind: registry.Set, Entry: registry.Entry{Name: name, Value: it.value}}, nil)
}

// tellLeftOut tells of names that the server has and has not listed: it may leave out one that is renewed in the moment in which a watch begins.
func (w *watch) tellLeftOut(ctx context.Context, present map[string]bool) (goes bool, err error) {
	names, err := w.names.held(ctx, w.root)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if _, listed := present[name]; listed {
			continue
		}
		it, err := w.names.get(ctx, name)
		switch {
		case errors.Is(err, registry.ErrUnknown), errors.Is(err, registry.ErrInvalid):
		case err != nil:
			return false, err
		case !w.set(name, it, present):
			return false, nil
		}
	}
	return true, nil
}

func (w *watch) deleted(name string) bool {
	if w.known[name] == 0 {
		return true
	}
	delete(w.known, name)
	return w.yield(registry.Event{Kind: registry.Deleted, Entry: registry.Entry{Name: name}}, nil)
}

// list is told once all names have come that the server has: others that are known are gone.
func (w *watch) list(present map[string]bool) bool {
	for name := range w.known {
		if !present[name] && !w.deleted(name) {
			return false
		}
	}
	if w.listed {
		return true
	}
	w.listed = true
	return w.yield(registry.Event{Kind: registry.Listed}, nil)
}
