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

// An entry is written in place under its lock.
func ExampleEntry_Lock() {
	ctx := context.Background()
	store, err := objects.Dial(ctx, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	_, err = objects.Put(ctx, store, "counts", 1, make([]int64, 4))
	if err != nil {
		fmt.Println(err)
		return
	}
	entry, err := store.ReadLatest(ctx, "counts", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer entry.Release()
	fmt.Println(count(ctx, entry, 3))
	fmt.Println(count(ctx, entry, 9))
	fmt.Println(count(ctx, entry, 3))
	// Output:
	// <nil>
	// there is no count 9
	// object "counts": entry 0: the program that was writing it in place did not finish: write it again under Repair, or delete it
}

// count counts one more of a kind.
func count(ctx context.Context, entry *objects.Entry, kind int) error {
	lock, err := entry.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Tear() // after an error or a panic; after Unlock it does nothing
	counts, err := objects.Slice[int64](lock, 0)
	if err != nil {
		return err
	}
	if kind >= len(counts) {
		return fmt.Errorf("there is no count %d", kind)
	}
	counts[kind]++
	return lock.Unlock()
}
