package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/internal/testkit"
)

// serve serves a channel in a folder of the test's own.
func serve(t *testing.T, l channel.Limits) *Server {
	t.Helper()
	testkit.Sockets(t)
	s, err := Serve(Options{Name: "jobs", Limits: l, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if elsewhere {
		serveElsewhere(t)
	}
	return s
}

func connect(t *testing.T) *Client {
	t.Helper()
	c, err := Connect("jobs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && c.lost == nil {
			t.Error(err)
		}
	})
	return c
}

func item(weight float64, n int) channel.Item {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7)
	}
	return channel.Item{Weight: weight, Data: data}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantStat waits until the channel tells what is wanted.
func wantStat(t *testing.T, s *Server, what string, ok func(channel.Stat) bool) {
	t.Helper()
	testkit.Until(t, what, func() bool { return ok(s.memory.Now("k")) })
}

func TestClient_ItemsOfAllSizesArrive(t *testing.T) {
	s := serve(t, channel.Limits{})
	c, d := connect(t), connect(t)
	ctx := t.Context()
	for range 3 { // regions are used again
		for i, n := range []int{0, 1, 1000, MaxInline, MaxInline + 1, 200_000, 3 << 20} {
			want := item(float64(i), n)
			must(t, c.Put(ctx, "k", want))
			peeked, err := d.Peek(ctx, "k")
			must(t, err)
			got, err := d.Get(ctx, "k")
			must(t, err)
			if got.Weight != want.Weight || !bytes.Equal(got.Data, want.Data) || !bytes.Equal(peeked.Data, want.Data) {
				t.Errorf("an item of %d bytes came as one of %d, weight %v", n, len(got.Data), got.Weight)
			}
		}
	}
	if now := s.memory.Now("k"); now.Items != 0 || now.Bytes != 0 || now.Keys != 0 || now.Gets != 21 {
		t.Errorf("%+v", now)
	}
}

func TestClient_BatchOfMoreThanAFrame(t *testing.T) {
	serve(t, channel.Limits{})
	c := connect(t)
	ctx := t.Context()
	for i := range 500 {
		must(t, c.Put(ctx, "k", item(1, 1000+i)))
	}
	must(t, c.Put(ctx, "k", item(1, 100_000)))
	got, err := c.GetBatch(ctx, "k", channel.Batch{Weight: 501})
	must(t, err)
	for i, x := range got {
		want := item(1, 1000+i)
		if i == 500 {
			want = item(1, 100_000)
		}
		if !bytes.Equal(x.Data, want.Data) {
			t.Fatalf("item %d of %d has %d bytes", i, len(got), len(x.Data))
		}
	}
	if len(got) != 501 {
		t.Errorf("%d items", len(got))
	}
}

func TestClient_TimesAndCancels(t *testing.T) {
	s := serve(t, channel.Limits{Items: 2})
	c := connect(t)
	ctx := t.Context()
	if _, err := c.TryGet(ctx, "k"); !errors.Is(err, channel.ErrEmpty) {
		t.Errorf("an empty key: %v", err)
	}
	must(t, c.Put(ctx, "k", item(1, 10)))
	must(t, c.Put(ctx, "k", item(2, 20)))
	if err := c.TryPut(ctx, "k", item(1, 1)); !errors.Is(err, channel.ErrFull) {
		t.Errorf("a full channel: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := c.Put(short, "k", item(1, 100_000)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a put whose time is over: %v", err)
	}
	got, err := c.GetBatch(ctx, "k", channel.Batch{Weight: 10, Wait: 10 * time.Millisecond})
	if err != nil || len(got) != 2 || len(got[0].Data) != 10 || len(got[1].Data) != 20 {
		t.Errorf("a batch whose time is over: %d items, %v", len(got), err)
	}
	if _, err := c.GetBatch(ctx, "k", channel.Batch{Weight: 10, Wait: time.Millisecond}); !errors.Is(err, channel.ErrEmpty) {
		t.Errorf("a batch of nothing: %v", err)
	}
	must(t, c.PutBack(ctx, "k", got...))
	again, err := c.GetBatch(ctx, "k", channel.Batch{Weight: 3})
	if err != nil || len(again) != 2 || len(again[0].Data) != 10 {
		t.Errorf("what was put back: %d items, %v", len(again), err)
	}
	if now := s.memory.Now("k"); now.WaitingGets != 0 || now.WaitingPuts != 0 || now.Returned != 2 {
		t.Errorf("%+v", now)
	}
}

func TestClient_SaysWhatIsWrong(t *testing.T) {
	s := serve(t, channel.Limits{Bytes: 1 << 20})
	c := connect(t)
	ctx := t.Context()
	wrong := func(err error, is error, words string) {
		t.Helper()
		if err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v; want one with %q", err, words)
		}
	}
	for _, w := range []float64{-1, math.NaN(), math.Inf(1)} {
		wrong(c.Put(ctx, "k", channel.Item{Weight: w}), channel.ErrInvalid, fmt.Sprintf("a weight of %v: want a number of 0 or more", w))
		_, err := c.GetBatch(ctx, "k", channel.Batch{Weight: w})
		wrong(err, channel.ErrInvalid, "a batch of a weight of")
	}
	wrong(c.Put(ctx, strings.Repeat("k", 1<<20), channel.Item{}), channel.ErrInvalid, "not accepted: a key of 1048576 bytes, at most 1024")
	wrong(c.Put(ctx, "", channel.Item{}), channel.ErrInvalid, "an empty key")
	wrong(c.Put(ctx, "k", item(1, 1<<20)), channel.ErrTooLarge, "it counts 1048705 bytes, the channel takes 1048576")
	wrong(c.Put(ctx, "k", item(1, 2<<20)), channel.ErrTooLarge, "the channel takes 1048576")
	_, err := Connect("none")
	var coded *control.Error
	if wrong(err, nil, "rlhost channel serve none"); !errors.As(err, &coded) || coded.Code != CodeNone {
		t.Errorf("no such channel: %v", err)
	}
	_, err = Connect("a/b")
	wrong(err, channel.ErrInvalid, "want up to 64 letters")
	_, err = Serve(Options{Name: "jobs"})
	wrong(err, ipc.ErrInUse, "jobs")
	if now := s.memory.Now("k"); now.Keys != 0 || now.Puts != 0 {
		t.Errorf("wrong calls left %+v", now)
	}
}

func TestClient_CloseWakesWhatWaits(t *testing.T) {
	s := serve(t, channel.Limits{Items: 1})
	c, d := connect(t), connect(t)
	ctx := t.Context()
	errs := make(chan error, 3)
	go func() { _, err := c.Get(ctx, "empty"); errs <- err }()
	must(t, c.Put(ctx, "k", item(1, 1)))
	go func() { errs <- d.Put(ctx, "k", item(1, 1)) }()
	wantStat(t, s, "a put and a get wait", func(n channel.Stat) bool { return n.WaitingGets == 1 && n.WaitingPuts == 1 })
	must(t, d.Stop(ctx))
	for range 2 {
		var coded *control.Error
		if err := <-errs; !errors.Is(err, channel.ErrClosed) || !errors.As(err, &coded) || coded.Code != CodeClosed {
			t.Errorf("what waited: %v", err)
		}
	}
	if _, err := c.Get(ctx, "k"); err != nil {
		t.Errorf("what is left: %v", err)
	}
	if _, err := c.Get(ctx, "k"); !errors.Is(err, channel.ErrClosed) {
		t.Errorf("nothing is left: %v", err)
	}
}

// TestServer_ADeadClient: what it waited for is forgotten, and what it held is lost and counted.
func TestServer_ADeadClient(t *testing.T) {
	s := serve(t, channel.Limits{Items: 8})
	c, d := connect(t), connect(t)
	ctx := t.Context()
	for i := range 4 {
		must(t, c.Put(ctx, "k", item(1, 10+100_000*(i%2))))
	}
	for range 2 { // one of 10 bytes, one in a region
		_, err := d.Get(ctx, "k")
		must(t, err)
	}
	waiting, err := d.begin(&request{op: opBatch, key: []byte("k"), weight: 5, wait: -1})
	must(t, err)
	wantStat(t, s, "a batch waits", func(n channel.Stat) bool { return n.WaitingGets == 1 })
	must(t, d.socket.Close()) // as a process that is killed does
	<-waiting.done
	wantStat(t, s, "its batch is gone", func(n channel.Stat) bool { return n.WaitingGets == 0 })
	if now := s.memory.Now("k"); now.Lost != 0 {
		t.Errorf("%d lost: its last request has said that it has used both", now.Lost)
	}
	got, err := c.GetBatch(ctx, "k", channel.Batch{Weight: 2})
	must(t, err)
	if len(got) != 2 || len(got[0].Data) != 10 || len(got[1].Data) != 100_010 {
		t.Errorf("what it waited for: %d items", len(got))
	}
}

// TestServer_DeadWithABatch: all items are lost of which no request has said that they were used, whatever was asked for their sake: one in
// a region is mapped, copied and given back.
func TestServer_DeadWithABatch(t *testing.T) {
	for name, sizes := range map[string][]int{"in a frame and in regions": {10, 100_000, 10, 100_000}, "in one region": {60_000, 60_000, 60_000}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, channel.Limits{})
			c, d := connect(t), connect(t)
			ctx := t.Context()
			for _, n := range sizes {
				must(t, c.Put(ctx, "k", item(1, n)))
			}
			n := len(sizes)
			got, err := d.GetBatch(ctx, "k", channel.Batch{Weight: float64(n)})
			must(t, err)
			if len(got) != n {
				t.Fatalf("%d items", len(got))
			}
			must(t, d.socket.Close())
			wantStat(t, s, "all are lost", func(now channel.Stat) bool { return now.Lost == uint64(n) })
			if held := s.held.Load(); held != 0 {
				t.Errorf("%d bytes are held by nobody", held)
			}
		})
	}
}

// TestServer_GivenBackButNotUsed: an item whose region a client has given back is not put back when it ends, as it does not say that it has
// used it.
func TestServer_GivenBackButNotUsed(t *testing.T) {
	s := serve(t, channel.Limits{})
	c, d := connect(t), connect(t)
	ctx := t.Context()
	must(t, c.Put(ctx, "k", item(1, 100_000)))
	must(t, c.Put(ctx, "k", item(2, 10)))
	got, err := d.GetBatch(ctx, "k", channel.Batch{Weight: 3})
	must(t, err)
	d.mu.Lock()
	d.got[0].used = false // as a client that has lost count
	d.mu.Unlock()
	must(t, d.Close())
	wantStat(t, s, "it has left", func(channel.Stat) bool { return s.Clients() == 1 })
	rest, err := c.GetBatch(ctx, "k", channel.Batch{Most: 9})
	if now := s.memory.Now("k"); err != nil || len(got) != 2 || len(rest) != 1 || rest[0].Weight != 2 || now.Returned != 1 || now.Lost != 0 {
		t.Errorf("%d items, then %v, %v, %+v", len(got), rest, err, now)
	}
}

// TestServer_AnOrderlyEnd: what a client had not read is put back.
func TestServer_AnOrderlyEnd(t *testing.T) {
	s := serve(t, channel.Limits{})
	c, d := connect(t), connect(t)
	ctx := t.Context()
	d.mu.Lock() // it does not read
	for range 2 {
		d.seq++
		d.waiting[d.seq] = &asked{done: make(chan struct{})}
		must(t, d.write(&request{op: opGet, seq: d.seq, key: []byte("k"), wait: -1}))
	}
	must(t, c.Put(ctx, "k", item(1, 10)))
	must(t, c.Put(ctx, "k", item(2, 100_000)))
	wantStat(t, s, "both are given out", func(n channel.Stat) bool { return n.Gets == 2 })
	must(t, d.write(&request{op: opBye}))
	d.lost = errEnded
	d.mu.Unlock()
	got, err := c.GetBatch(ctx, "k", channel.Batch{Weight: 3})
	must(t, err)
	if now := s.memory.Now("k"); now.Lost != 0 || now.Returned != 2 || len(got) != 2 || got[0].Weight != 1 || len(got[1].Data) != 100_000 {
		t.Errorf("%d items, of weights %v and %v and %d and %d bytes, %+v", len(got), got[0].Weight, got[1].Weight, len(got[0].Data), len(got[1].Data), now)
	}
}

func TestServer_HostileFrames(t *testing.T) {
	s := serve(t, channel.Limits{})
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		c, err := Connect("jobs")
		must(t, err)
		for range 20 {
			frame := (&request{op: op(r.IntN(16)), flags: flags(r.IntN(4)), seq: r.Uint32(), ack: uint32(r.IntN(2)), most: r.Uint32(), weight: float64(r.IntN(3)), wait: int64(r.IntN(3)) - 1,
				region: uint64(r.IntN(4)), size: uint64(r.IntN(1 << 18)), key: []byte("k"), data: make([]byte, r.IntN(20))}).append(nil)
			if r.IntN(3) == 0 {
				frame[r.IntN(len(frame))] = byte(r.Uint32())
			}
			if op(frame[0]) == opStop {
				continue
			}
			if c.socket.Send(frame[:1+r.IntN(len(frame))]) != nil {
				break
			}
		}
		_ = c.Close() // the server may have ended it
	}
	c := connect(t)
	wantStat(t, s, "all of them are gone", func(n channel.Stat) bool { return s.Clients() == 1 && n.WaitingGets == 0 })
	if err := c.Put(t.Context(), "other", item(1, 100_000)); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if got, err := c.Get(t.Context(), "other"); err != nil || len(got.Data) != 100_000 {
		t.Errorf("seed %d: %d bytes, %v", seed, len(got.Data), err)
	}
}

// TestClient_ManyOfManyKeys: clients put and get at the same time; every item arrives once.
func TestClient_ManyOfManyKeys(t *testing.T) {
	s := serve(t, channel.Limits{Items: 50, Bytes: 2 << 20})
	const producers, consumers, each = 4, 4, 400
	ctx := t.Context()
	var putting, getting sync.WaitGroup
	for p := range producers {
		c := connect(t)
		putting.Go(func() {
			for i := range each {
				data := binary.LittleEndian.AppendUint32(nil, uint32(p))
				data = binary.LittleEndian.AppendUint32(data, uint32(i))
				data = append(data, make([]byte, (i%3)*40_000)...)
				if err := c.Put(ctx, fmt.Sprint("key", i%5), channel.Item{Weight: float64(1 + i%3), Data: data}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var mu sync.Mutex
	seen := map[uint64]bool{}
	for g := range consumers {
		c := connect(t)
		getting.Go(func() {
			for n := 0; ; n++ {
				items, err := c.GetBatch(ctx, fmt.Sprint("key", (g+n)%5), channel.Batch{Weight: float64(n % 7), Wait: 20 * time.Millisecond})
				if errors.Is(err, channel.ErrClosed) {
					if s.memory.Now("").Items == 0 {
						return
					}
					continue
				}
				mu.Lock()
				for _, i := range items {
					id := binary.LittleEndian.Uint64(i.Data)
					if seen[id] {
						t.Errorf("item %x came twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	putting.Wait()
	s.memory.Close()
	getting.Wait()
	if len(seen) != producers*each {
		t.Errorf("%d items of %d", len(seen), producers*each)
	}
}
