// Package objects is the Go client of an object store: named, bounded, ordered sets of arrays that processes of one
// user share through a running rlhost. plugins/objects serves one, plugins/objects/store defines the operations, and
// rlhost.objects in sdk/python is the client in Python.
//
//	store, err := objects.Dial(ctx, "")
//	err = store.Create(ctx, "obs", objects.Config{Capacity: 64, Tracks: []objects.Track{{Bytes: 1 << 20}}})
//	index, err := objects.Push(ctx, store, "obs", frames, 256, 1024) // one copy, one request
//	entry, err := store.Pop(ctx, "obs")                              // waits until ctx ends
//	defer entry.Release()
//	view, err := objects.View[float32](entry, 0)                     // the shared memory, read-only, until Release
//
// Entry.Lock locks an entry against others that lock it, to write it in place; a writer that dies in the lock leaves the entry torn.
//
// Operations wait until ctx ends; with NoWait they do not wait at all. Errors wrap sentinels such as ErrFull and ErrEmpty.
//
// A Store is one session: everything it holds is released when it closes, or when the process ends, for any reason. If
// the host is lost, every later operation returns ErrLost at once, and mapped memory stays readable; the Store does not
// reconnect, because its claims are gone: Dial again. An object that was removed and created again is found by its
// name.
//
// Reading a view after Release shows later entries; writing to one faults: the mapping is read-only. A Store may be
// used from any number of goroutines.
package objects
