package objects_test

import (
	"context"
	"fmt"

	"github.com/rlhost/rlhost/sdk/objects"
)

// An object is a bounded sequence of arrays in shared memory: read by index, or used as a queue.
func Example() {
	if err := share(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// entry 1 has [2 4]
	// entry 0 leaves the queue with [1 2]
}

func share(ctx context.Context) error {
	store, err := objects.Dial(ctx, "") // rlhost store serves it
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Create(ctx, "obs", objects.Config{Capacity: 8, Tracks: []objects.Track{{Bytes: 64}}}); err != nil {
		return err
	}
	for _, row := range [][]float32{{1, 2}, {2, 4}} {
		if _, err := objects.Push(ctx, store, "obs", row, 2); err != nil {
			return err
		}
	}
	latest, err := store.ReadLatest(ctx, "obs", 0)
	if err != nil {
		return err
	}
	if err := show(latest, "entry %d has %v\n"); err != nil {
		return err
	}
	first, err := store.Pop(ctx, "obs")
	if err != nil {
		return err
	}
	return show(first, "entry %d leaves the queue with %v\n")
}

// show prints an entry's shared memory, and releases it.
func show(entry *objects.Entry, format string) error {
	view, err := objects.View[float32](entry, 0)
	if err != nil {
		return err
	}
	fmt.Printf(format, entry.Index(), view)
	return entry.Release()
}
