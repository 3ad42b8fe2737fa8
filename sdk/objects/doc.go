// Package objects is the Go client of an object store: named, bounded, ordered sets of arrays that processes of one
// user share through a running rlhost. plugins/objects serves one, plugins/objects/store says what every operation means, and
// rlhost.objects in sdk/python is the same in Python.
//
//	store, err := objects.Dial(ctx, "")
//	err = store.Create(ctx, "obs", objects.Config{Capacity: 64, Tracks: []objects.Track{{Bytes: 1 << 20}}})
//	index, err := objects.Push(ctx, store, "obs", frames, 256, 1024) // one copy, one request
//	entry, err := store.Pop(ctx, "obs")                              // waits until ctx ends
//	defer entry.Release()
//	view, err := objects.View[float32](entry, 0)                     // the shared memory, read-only, until Release
//
// Operations wait until ctx ends; with NoWait they do not wait at all. Errors wrap the sentinels of plugins/objects/store, such
// as ErrFull and ErrEmpty, whose names this package repeats.
//
// A Store is one session: everything it holds is given back when it closes, or when the process ends, however it ends.
// If the host goes, every operation from then on returns ErrLost at once, and the memory that is mapped stays readable;
// nothing connects anew by itself, because what was held is gone: Dial again. An object that was removed and made anew
// under its name is found again by name.
//
// A view that is read after Release shows whatever comes next, and one that is written to faults: the mapping is
// read-only. A Store may be used from any number of goroutines.
package objects
