package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
)

func TestViews_AreTheSharedMemoryWithoutACopy(t *testing.T) {
	host := serve(t)
	writer, reader := dial(t, host.Path()), dial(t, host.Path())
	create(t, writer, "x", 4, 1<<20)
	w, err := writer.New(t.Context(), "x", ValueOf[float32](3, 4))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Slice[float32](w, 0)
	if err != nil || len(a) != 12 {
		t.Fatalf("%d elements, %v, want 12", len(a), err)
	}
	for i := range a {
		a[i] = float32(i)
	}
	if _, err := Slice[float64](w, 0); !errors.Is(err, ErrDType) {
		t.Errorf("float32 seen as float64 = %v, want ErrDType", err)
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := reader.ReadLatest(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	view, err := View[float32](e, 0)
	if err != nil || len(view) != 12 || view[11] != 11 {
		t.Errorf("the reader sees %v, %v", view, err)
	}
	value := e.Value(0)
	if got := value.String(); got != "f32[3 4]" {
		t.Errorf("the reader sees a %s, want f32[3 4]", got)
	}
	a[11] = 99 // against the rules: the writer's claim is over
	if view[11] != 99 {
		t.Errorf("the view is a copy")
	}
	if err := faults(func() { view[0] = 1 }); err == nil {
		t.Errorf("a reader could write to the memory")
	}
	if err := e.Release(); err != nil {
		t.Errorf("Release = %v", err)
	}
	if got, err := View[float32](e, 0); got != nil || !errors.Is(err, ErrSpent) {
		t.Errorf("a view after the release = %v, %v, want ErrSpent", got, err)
	}
}

// faults runs fn and returns its memory fault.
func faults(fn func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	fn()
	return nil
}

func TestDoubleRelease_NamesObjectAndEntry(t *testing.T) {
	s := dial(t, serve(t).Path())
	create(t, s, "obs", 4, 64)
	push(t, s, "obs", []float32{1})
	e := pop(t, s, "obs")
	if err := e.Release(); err != nil {
		t.Fatal(err)
	}
	if err := e.Release(); !errors.Is(err, ErrSpent) || !strings.Contains(err.Error(), `object "obs": entry 0`) {
		t.Errorf("second Release = %v, want ErrSpent of entry 0 of obs", err)
	}
	w, err := s.New(t.Context(), "obs", ValueOf[float32](1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort = %v", err)
	}
	if _, err := w.Commit(t.Context()); !errors.Is(err, ErrSpent) {
		t.Errorf("Commit after Abort = %v, want ErrSpent", err)
	}
	settled(t, s, "obs", 1)
}

func TestOversize_IsRefusedAndLeaksNothing(t *testing.T) {
	s := dial(t, serve(t).Path())
	create(t, s, "x", 4, 64)
	for range 10 {
		if _, err := Push(t.Context(), s, "x", make([]float32, 17)); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "64 bytes") {
			t.Fatalf("an oversize push = %v, want ErrTooLarge with the limit", err)
		}
	}
	for i := range 4 {
		if _, err := Push(NoWait(t.Context()), s, "x", []float32{float32(i)}); err != nil {
			t.Errorf("push %d of 4: %v", i, err)
		}
	}
	for range 10 {
		if _, err := Push(t.Context(), s, "x", make([]float32, 17)); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("an oversize push = %v, want ErrTooLarge", err)
		}
	}
	if _, err := Push(NoWait(t.Context()), s, "x", []float32{1}); !errors.Is(err, ErrFull) {
		t.Errorf("a push too many = %v, want ErrFull", err)
	}
}

func TestRoundTrips_OneForAPushAndOneForAPop(t *testing.T) {
	s := dial(t, serve(t).Path())
	create(t, s, "x", 8, 64)
	cost := func(what string, want uint64, fn func() error) {
		t.Helper()
		before := s.RoundTrips()
		if err := fn(); err != nil {
			t.Fatal(err)
		}
		if got := s.RoundTrips() - before; got != want {
			t.Errorf("%s takes %d round trips, want %d", what, got, want)
		}
	}
	push := func() error { _, err := Push(t.Context(), s, "x", []float32{1}); return err }
	pop := func() error {
		e, err := s.Pop(t.Context(), "x")
		if err != nil {
			return err
		}
		return e.Release()
	}
	read := func() error {
		e, err := s.ReadLatest(t.Context(), "x", 0)
		if err != nil {
			return err
		}
		return e.Release()
	}
	write := func() error {
		w, err := s.New(t.Context(), "x", ValueOf[float32](1))
		if err == nil {
			_, err = w.Commit(t.Context())
		}
		return err
	}
	cost("the first push, which finds and maps the object,", 4, push)
	cost("the first pop, which maps it to read,", 2, pop)
	cost("a push", 1, push)
	cost("a read without a copy", 1, read)
	cost("a write without a copy", 2, write)
	cost("a pop", 1, pop)
}

func TestWaiting_IsWokenAndEndsWithItsContext(t *testing.T) {
	host := serve(t)
	a, b := dial(t, host.Path()), dial(t, host.Path())
	create(t, a, "x", 1, 64)
	got := make(chan error, 1)
	go func() {
		e, err := a.Pop(context.Background(), "x")
		if err == nil {
			err = e.Release()
		}
		got <- err
	}()
	push(t, b, "x", []int32{1})
	if err := <-got; err != nil {
		t.Errorf("the pop that waited: %v", err)
	}

	short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := a.Pop(short, "x"); !errors.Is(err, ErrEmpty) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pop whose time is over = %v, want ErrEmpty or DeadlineExceeded", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	go func() {
		for host.Store().Names("", "", 1) != nil {
			if stat, err := host.Store().Stat(1); err != nil || stat.Waiting > 0 {
				break
			}
		}
		cancel()
	}()
	if _, err := a.Pop(canceled, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a pop that was cancelled = %v, want context.Canceled", err)
	}
	if _, err := Push(NoWait(t.Context()), b, "x", []int32{2}); err != nil {
		t.Fatal(err)
	}
	if _, err := Push(NoWait(t.Context()), b, "x", []int32{3}); !errors.Is(err, ErrFull) {
		t.Errorf("a push into a full object = %v, want ErrFull", err)
	}
	full, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := Push(full, b, "x", []int32{3}); !errors.Is(err, ErrFull) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a push whose time is over = %v, want ErrFull or DeadlineExceeded", err)
	}
	e, err := a.Pop(NoWait(t.Context()), "x")
	if err != nil {
		t.Fatal(err)
	}
	if view, err := View[int32](e, 0); err != nil || view[0] != 2 {
		t.Errorf("the pop that was cancelled took an entry: left is %v, %v", view, err)
	}
}

func TestRevoke_NeverTearsWhatIsRead(t *testing.T) {
	s := dial(t, serve(t).Path())
	create(t, s, "x", 2, 4096)
	data := make([]byte, 4096)
	stamp(data, 1)
	index, err := s.PushBytes(t.Context(), "x", data)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Read(t.Context(), "x", index)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "x", index, false); !errors.Is(err, ErrBusy) {
		t.Errorf("Delete of what is read = %v, want ErrBusy", err)
	}
	if err := s.Delete(t.Context(), "x", index, true); err != nil {
		t.Errorf("Delete with revoke = %v", err)
	}
	for n := range 20 {
		stamp(data, uint64(n)<<20)
		i, err := s.PushBytes(t.Context(), "x", data)
		if err := errors.Join(err, s.Delete(t.Context(), "x", i, false)); err != nil {
			t.Fatal(err)
		}
	}
	if view, err := View[uint8](e, 0); err != nil || view[0] != 1 || torn(view) != nil {
		t.Errorf("the reader's bytes changed: %v", torn(view))
	}
	if _, err := s.Read(NoWait(t.Context()), "x", index); !errors.Is(err, ErrNoEntry) {
		t.Errorf("a new reader gets %v, want ErrNoEntry", err)
	}
}

func TestRemovedObject_IsFoundAgainByName(t *testing.T) {
	host := serve(t)
	a, b := dial(t, host.Path()), dial(t, host.Path())
	create(t, a, "x", 4, 64)
	push(t, a, "x", []float32{1})
	e := pop(t, a, "x")
	if err := b.Remove(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), a, "x", []float32{1}); !errors.Is(err, ErrRemoved) && !errors.Is(err, ErrNotFound) {
		t.Errorf("a push to what was removed = %v, want ErrRemoved or ErrNotFound", err)
	}
	create(t, b, "x", 4, 128)
	if _, err := Push(t.Context(), a, "x", make([]float32, 32)); err != nil {
		t.Errorf("a push to the new object of that name: %v", err)
	}
	if view, err := View[float32](e, 0); err != nil || view[0] != 1 {
		t.Errorf("what was read of the old one: %v, %v", view, err)
	}
	if err := e.Release(); err != nil {
		t.Errorf("Release = %v", err)
	}
}

func TestStore_ClosesOnceAndLeavesNothing(t *testing.T) {
	host := serve(t)
	before := sharedFiles(t)
	s := dial(t, host.Path())
	create(t, s, "x", 4, 64)
	push(t, s, "x", []float32{1})
	e, err := s.Read(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close = %v, want ErrClosed", err)
	}
	if _, err := s.Pop(t.Context(), "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("Pop of a closed store = %v, want ErrClosed", err)
	}
	if e.Bytes(0) == nil {
		t.Errorf("memory that was held went with Close")
	}
	if err := e.Release(); err != nil {
		t.Errorf("Release = %v", err)
	}
	if after := sharedFiles(t); len(after) != len(before) {
		t.Errorf("files in /dev/shm: %v, before: %v", after, before)
	}
}

func sharedFiles(t *testing.T) []string {
	t.Helper()
	files, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Skip(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func TestManyTracks_TravelTogether(t *testing.T) {
	s := dial(t, serve(t).Path())
	c := Config{Capacity: 2, Tracks: []Track{{Name: "obs", Bytes: 64, DType: DTypeOf[float32]()}, {Name: "ends", Bytes: 8}}}
	if err := s.Create(t.Context(), "x", c); err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), s, "x", []float32{1}); !errors.Is(err, ErrTracks) {
		t.Errorf("one array for two tracks = %v, want ErrTracks", err)
	}
	if _, err := s.New(t.Context(), "x", ValueOf[float64](2), ValueOf[bool](2)); !errors.Is(err, ErrDType) {
		t.Errorf("float64 for a track of float32 = %v, want ErrDType", err)
	}
	w, err := s.New(t.Context(), "x", ValueOf[float32](2), ValueOf[bool](2))
	if err != nil {
		t.Fatal(err)
	}
	obs, err := Slice[float32](w, 0)
	ends, endsErr := Slice[bool](w, 1)
	if err := errors.Join(err, endsErr); err != nil {
		t.Fatal(err)
	}
	obs[1], ends[0], ends[1] = 5, false, true
	index, err := w.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.BatchRead(t.Context(), "x", []uint64{index})
	if err != nil {
		t.Fatal(err)
	}
	got, err := View[bool](b.Entry(0), 1)
	if err != nil || !got[1] || b.Entry(0).Tracks() != 2 {
		t.Errorf("the second track holds %v, %v", got, err)
	}
	if err := b.Entry(0).Release(); !errors.Is(err, ErrSpent) {
		t.Errorf("Release of an entry of a batch = %v, want ErrSpent", err)
	}
	if err := b.Release(); err != nil {
		t.Errorf("Release = %v", err)
	}
}

func TestNamesAndPut(t *testing.T) {
	s := dial(t, serve(t).Path())
	for i := range 300 {
		name := fmt.Sprintf("run/%03d%s", i, strings.Repeat("x", 240))
		if err := s.Ensure(t.Context(), name, Config{Capacity: 1, Tracks: []Track{{Bytes: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Put(t.Context(), s, "other", 4, []int64{1, 2, 3, 4}, 2, 2); err != nil {
		t.Fatal(err)
	}
	names, err := s.Names(t.Context(), "run/")
	if err != nil || len(names) != 300 {
		t.Errorf("%d names, %v, want 300", len(names), err)
	}
	if err := s.WaitFor(NoWait(t.Context()), "nothing"); !errors.Is(err, ErrNotFound) {
		t.Errorf("WaitFor = %v, want ErrNotFound", err)
	}
	e, err := s.Read(t.Context(), "other", 0)
	if err != nil {
		t.Fatal(err)
	}
	if v := e.Value(0); v.DType != DTypeOf[int64]() || v.Rank != 2 {
		t.Errorf("put made a %s", v.String())
	}
	if v := wire.ValueOf(wire.Bytes, 1); v.DType.Size() != 1 {
		t.Errorf("bytes are %d bytes", v.DType.Size())
	}
}

// A commit that fails has no entry: the block goes to who waits for one.
func TestCommit_ThatFailsReturnsItsBlock(t *testing.T) {
	host := serve(t)
	s, other := dial(t, host.Path()), dial(t, host.Path())
	if err := s.Create(t.Context(), "x", Config{Capacity: 1, Spares: -1, Tracks: []Track{{Bytes: 8}}}); err != nil {
		t.Fatal(err)
	}
	w, err := s.New(t.Context(), "x", ValueOf[float64]())
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Commit(over); !errors.Is(err, context.Canceled) {
		t.Fatalf("Commit = %v, want context.Canceled", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := Push(soon, other, "x", []float64{7}); err != nil {
		t.Fatalf("Push = %v: the block of the failed commit is still in use", err)
	}
	e, err := s.Pop(soon, "x")
	if err != nil {
		t.Fatal(err)
	}
	if view, err := View[float64](e, 0); err != nil || view[0] != 7 {
		t.Errorf("popped %v, %v, want 7", view, err)
	}
	if err := e.Release(); err != nil {
		t.Error(err)
	}
}

func TestGrow_IsFoundByWhoKnowsTheSmallObject(t *testing.T) {
	host := serve(t)
	a, b := dial(t, host.Path()), dial(t, host.Path())
	small := Config{Capacity: 8, Tracks: []Track{{Bytes: 8}}}
	if err := a.Create(t.Context(), "x", small); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PushBytes(t.Context(), "x", []byte("before")); err != nil { // its answer brings a block for the next push
		t.Fatal(err)
	}
	if err := a.Grow(t.Context(), "x", Config{Capacity: 1, Tracks: []Track{{Bytes: 1000}}}); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 1000)
	if index, err := b.PushBytes(t.Context(), "x", large); err != nil || index != 1 {
		t.Fatalf("Push of what fits now = %d, %v, want 1", index, err)
	}
	if _, err := b.PushBytes(t.Context(), "x", make([]byte, 1001)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Push of what does not fit = %v, want ErrTooLarge", err)
	}
	for want := range uint64(2) {
		e, err := b.Pop(t.Context(), "x")
		if err != nil || e.Index() != want || want == 0 && string(e.Bytes(0)) != "before" {
			t.Fatalf("Pop = %+v, %v", e, err)
		}
		if err := e.Release(); err != nil {
			t.Error(err)
		}
	}
	settled(t, a, "x", 1)
}
