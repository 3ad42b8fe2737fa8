package remote

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// elsewhere makes serve serve the channel as another machine has it: tests of this package run one at a time.
var elsewhere bool

// serveElsewhere serves the channel of this runtime folder in another one, where clients connect from then on.
func serveElsewhere(t *testing.T) {
	t.Helper()
	here, err := SocketPath("jobs")
	must(t, err)
	near := serveNear(t, func() (control.Line, error) {
		one, other := testkit.NewLine()
		go carry(here, other)
		return one, nil
	})
	// A client's connection may end after the test that closed it.
	t.Cleanup(func() { testkit.Until(t, "no region is in use", func() bool { return used(near.regions) == 0 }) })
}

// used returns how many regions somebody refers to.
func used(r *regions) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.all)
	for _, list := range r.free {
		n -= len(list)
	}
	return n
}

func serveNear(t *testing.T, open func() (control.Line, error)) *Near {
	t.Helper()
	testkit.Sockets(t)
	near, err := ServeNear(NearOptions{Name: "jobs", Open: open, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := near.Close(); err != nil {
			t.Error(err)
		}
	})
	return near
}

// A channel of another machine passes every test of one on this machine.
func TestNear_IsAsAChannelHere(t *testing.T) {
	elsewhere = true
	defer func() { elsewhere = false }()
	for name, test := range map[string]func(*testing.T){
		"items of all sizes": TestClient_ItemsOfAllSizesArrive, "batches": TestClient_BatchOfMoreThanAFrame, "times": TestClient_TimesAndCancels,
		"what is wrong": TestClient_SaysWhatIsWrong, "close": TestClient_CloseWakesWhatWaits, "a dead client": TestServer_ADeadClient,
		"dead with a batch": TestServer_DeadWithABatch, "given back": TestServer_GivenBackButNotUsed, "an orderly end": TestServer_AnOrderlyEnd,
		"hostile frames": TestServer_HostileFrames, "many of many keys": TestClient_ManyOfManyKeys,
	} {
		t.Run(name, test)
	}
}

// Whatever comes over a line, nobody but that client is harmed.
func TestCarry_HostileMessages(t *testing.T) {
	s := serve(t, channel.Limits{Bytes: 4 << 20})
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	here, err := SocketPath("jobs")
	must(t, err)
	for range 200 {
		near, far := testkit.NewLine()
		done := make(chan struct{})
		go func() { carry(here, far); close(done) }()
		go func() {
			for _, err := near.Receive(); err == nil; _, err = near.Receive() {
			}
		}()
		_ = near.Send(appendFrame(nil, (&request{op: opHello, seq: 1, size: Version}).append(nil)))
		for range 10 {
			q := request{op: op(r.IntN(16)), seq: r.Uint32(), region: uint64(r.IntN(4)), size: uint64(r.IntN(1 << 18)), key: []byte("k"), weight: 1, wait: -1}
			if q.op == opStop {
				continue
			}
			m := appendFrame(nil, q.append(nil))
			if r.IntN(2) == 0 {
				m = appendContent(m, content{q.region, 1 << 18, make([]byte, q.size)})
			}
			if r.IntN(4) == 0 {
				m[r.IntN(min(len(m), 100))] = byte(r.Uint32())
			}
			if near.Send(m[:min(len(m), 1+r.IntN(2*len(m)))]) != nil {
				break
			}
		}
		_ = near.Close()
		<-done
	}
	wantStat(t, s, "all of them are gone", func(n channel.Stat) bool { return s.Clients() == 0 && n.WaitingGets == 0 })
	c := connect(t)
	want := item(1, 100_000)
	must(t, c.Put(t.Context(), "other", want))
	if got, err := c.Get(t.Context(), "other"); err != nil || string(got.Data) != string(want.Data) {
		t.Errorf("seed %d: %d bytes, %v", seed, len(got.Data), err)
	}
}

// A host that joined may not write into an item that the channel has: its region was the host's before.
func TestCarry_WritesNoRegionOfOthers(t *testing.T) {
	serve(t, channel.Limits{})
	here, err := SocketPath("jobs")
	must(t, err)
	near, far := testkit.NewLine()
	go carry(here, far)
	send := func(q request, regions ...content) {
		m := appendFrame(nil, q.append(nil))
		for _, c := range regions {
			m = appendContent(m, c)
		}
		must(t, near.Send(m))
	}
	answered := func() (head reply) {
		m, err := near.Receive()
		must(t, err)
		frame, _, err := parseMessage(m)
		must(t, errors.Join(err, head.parse(frame)))
		return head
	}
	send(request{op: opHello, seq: 1, size: Version})
	answered()
	want := item(1, 100_000)
	send(request{op: opAlloc, seq: 2, size: 100_000})
	id := answered().spare
	send(request{op: opPut, seq: 3, key: []byte("k"), weight: 1, wait: -1, region: id, size: 100_000}, content{id, 1 << 17, want.Data})
	answered()
	send(request{op: opPut, seq: 4, key: []byte("k"), weight: 1, wait: -1, region: id, size: 100_000}, content{id, 1 << 17, make([]byte, 100_000)})
	for err == nil { // it is disconnected
		_, err = near.Receive()
	}
	c := connect(t)
	if got, err := c.Get(t.Context(), "k"); err != nil || string(got.Data) != string(want.Data) {
		t.Errorf("the item has other bytes: %v", err)
	}
}

func TestNear_SaysThatTheRunIsCutOff(t *testing.T) {
	serveNear(t, func() (control.Line, error) { return nil, io.ErrNoProgress })
	if _, err := Connect("jobs"); err == nil || !strings.Contains(err.Error(), "the run does not answer this machine") {
		t.Errorf("no way to the run: %v", err)
	}
	gone := filepath.Join(t.TempDir(), "gone.sock")
	serveNear(t, func() (control.Line, error) {
		one, other := testkit.NewLine()
		go carry(gone, other)
		return one, nil
	})
	if _, err := Connect("jobs"); err == nil || !strings.Contains(err.Error(), "no such channel on the machine of the run") {
		t.Errorf("the run has ended its channel: %v", err)
	}
}
