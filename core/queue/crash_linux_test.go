package queue

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/internal/fifo/fifotest"
	"github.com/rlhost/rlhost/internal/testkit"
)

const testCells = 16

func newTestQueue(t testing.TB, bytes int) *MPMC {
	t.Helper()
	q, err := New("test", testCells, bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// checkLive passes messages through a queue that must be empty: enough to meet every cell more than once.
func checkLive(t testing.TB, q *MPMC) {
	t.Helper()
	put, get := q.As(MaxOwner-1), q.As(MaxOwner)
	items, got := Items(3, q.Payload()), Items(3, q.Payload())
	for i := range 3 * testCells {
		for j := range items {
			number(&items[j], 0, uint64(3*i+j+1))
		}
		if err := put.PutMany(items, 0); err != nil {
			t.Fatalf("put %d after recovery: %v", i, err)
		}
		n, err := get.GetMany(got, 0)
		if err != nil || n != 3 {
			t.Fatalf("get %d after recovery: %d messages, %v", i, n, err)
		}
		for j := range got {
			if seq, whole := numberOf(&got[j]); seq != uint64(3*i+j+1) || !whole {
				t.Fatalf("after recovery message %d is %d, whole %v", 3*i+j+1, seq, whole)
			}
		}
	}
}

// takeAll empties the queue and checks that its messages continue from the number given, without a gap.
func takeAll(t testing.TB, e *End, next uint64) uint64 {
	t.Helper()
	items := Items(5, e.q.Payload())
	for {
		n, err := e.GetMany(items, 0)
		if err != nil {
			return next
		}
		for i := range items[:n] {
			seq, whole := numberOf(&items[i])
			if seq != next || !whole {
				t.Fatalf("got message %d, whole %v, want %d", seq, whole, next)
			}
			next++
		}
	}
}

// killer ends a child that has been started.
type killer func(*exec.Cmd, *fifotest.Notes)

// dies has a child use a queue until it is killed, while a goroutine works at the other end again and again. It returns
// the queue, in which the child's claims are not recovered, and the child's notes.
func dies(t testing.TB, task childTask, kill killer, work func(other *End)) (*MPMC, *fifotest.Notes) {
	t.Helper()
	q := newTestQueue(t, task.bytes)
	n, seg := fifotest.NewNotes(t)
	cmd := fifotest.StartChild(t, task, q.FD(), seg)
	var over atomic.Bool
	var working sync.WaitGroup
	working.Go(func() {
		for other := q.As(1); !over.Load(); {
			work(other)
		}
	})
	kill(cmd, n)
	fifotest.WaitDead(t, cmd)
	over.Store(true)
	working.Wait()
	return q, n
}

// producerDies has a child put until it is killed, and checks that exactly its messages arrive.
func producerDies(t testing.TB, task childTask, kill killer) Recovered {
	t.Helper()
	next := uint64(1)
	q, n := dies(t, task, kill, func(other *End) {
		next = takeAll(t, other, next)
		runtime.Gosched()
	})
	done := q.Recover(uint16(task.owner), func(Item) { t.Error("a producer's death hands messages out") })
	next = takeAll(t, q.As(2), next)
	put := n.Moved.Load()
	if got := next - 1; got != put && got != put+uint64(task.batch) {
		t.Errorf("%d messages arrived, %d or a batch of %d more were put", got, put, task.batch)
	}
	checkLive(t, q)
	return done
}

// consumerDies has a child get until it is killed, and checks that every message it had not taken is handed out or still there.
func consumerDies(t testing.TB, task childTask, kill killer) Recovered {
	t.Helper()
	put := uint64(0)
	items := Items(3, task.bytes)
	q, n := dies(t, task, kill, func(other *End) {
		for i := range items {
			number(&items[i], 0, put+uint64(i)+1)
		}
		if other.PutMany(items, time.Millisecond) == nil {
			put += uint64(len(items))
		}
	})
	first := uint64(0)
	next := uint64(0)
	done := q.Recover(uint16(task.owner), func(item Item) {
		seq, whole := numberOf(&item)
		if next == 0 {
			first, next = seq, seq
		}
		if seq != next || !whole {
			t.Errorf("message %d was handed out, whole %v, want %d", seq, whole, next)
		}
		next++
	})
	checkRest(t, q, task, n.Moved.Load(), put, first, next)
	checkLive(t, q)
	return done
}

// checkRest checks that the messages handed out, from first to before next, and the messages left are all that the killed
// consumer had not taken. Messages that it gave back from its last batch lie in between, because it gives them back from the end.
func checkRest(t testing.TB, q *MPMC, task childTask, taken, put, first, next uint64) {
	t.Helper()
	e := q.As(2)
	rest := put + 1
	if item, err := e.Get(make([]byte, task.bytes), 0); err == nil {
		rest, _ = numberOf(&item)
	}
	if next == 0 {
		first, next = rest, rest
	}
	if first <= taken || next > rest || rest > taken+uint64(task.batch)+1 {
		t.Errorf("handed out %d to %d, %d and what follows is left; the dead consumer had taken %d, batch %d",
			first, next-1, rest, taken, task.batch)
	}
	if end := takeAll(t, e, rest+1); end != put+1 && rest != put+1 {
		t.Errorf("messages up to %d are left, %d were put", end-1, put)
	}
}

func TestMPMC_ProcessKilledAtAnyStepIsRepaired(t *testing.T) {
	rng := testkit.Random(t)
	count := 0
	var total Recovered
	add := func(r Recovered) {
		count++
		total.Voided, total.Lost, total.Freed = total.Voided+r.Voided, total.Lost+r.Lost, total.Freed+r.Freed
	}
	itself := func(*exec.Cmd, *fifotest.Notes) {}
	for _, batch := range []int{1, 8} {
		for step := range 2 + 2*batch {
			task := childTask{role: "put", owner: 77, batch: batch, visits: rng.IntN(9), step: step, bytes: numberedBytes}
			add(producerDies(t, task, itself))
			task.role = "get"
			add(consumerDies(t, task, itself))
		}
	}
	t.Logf("%d processes killed themselves at a step: %+v", count, total)
}

func TestMPMC_ConsumerKilledWhileItSkipsIsRepaired(t *testing.T) {
	for step := range 3 {
		q := newTestQueue(t, numberedBytes)
		dead, alive := q.As(9), q.As(10)
		items := Items(2, numberedBytes)
		for i := range items {
			number(&items[i], 0, uint64(i+1))
		}
		if !stopAfter(2, func(at func()) { dead.putSteps(items, at) }) {
			t.Fatal("the put went on to its end")
		}
		if done := q.Recover(9, nil); done.Voided != 2 {
			t.Fatalf("Recover = %+v, want 2 cells void", done)
		}
		if err := alive.PutMany(items, 0); err != nil {
			t.Fatal(err)
		}
		n, seg := fifotest.NewNotes(t)
		cmd := fifotest.StartChild(t, childTask{role: "get", owner: 11, batch: 1, step: step, bytes: numberedBytes}, q.FD(), seg)
		fifotest.WaitDead(t, cmd)
		q.Recover(11, func(Item) { t.Error("a void cell was handed out") })
		if next := takeAll(t, alive, 1); next != 3 || n.Moved.Load() != 0 {
			t.Errorf("step %d: %d messages are left, want 2", step, next-1)
		}
		checkLive(t, q)
	}
}

func TestMPMC_ProcessKilledAtRandomIsRepaired(t *testing.T) {
	rng := testkit.Random(t)
	count := testkit.Kills(t, 60)
	var total Recovered
	for i := range count {
		// Large messages, so that many die in the middle of one.
		task := childTask{role: "put", owner: 100 + i%1000, batch: []int{1, 8}[rng.IntN(2)], step: -1, bytes: 32 << 10}
		kill := killLater(time.Duration(rng.IntN(1_000_000)))
		var r Recovered
		if rng.IntN(2) == 0 {
			r = producerDies(t, task, kill)
		} else {
			task.role = "get"
			r = consumerDies(t, task, kill)
		}
		total.Voided, total.Lost, total.Freed = total.Voided+r.Voided, total.Lost+r.Lost, total.Freed+r.Freed
	}
	t.Logf("%d processes killed at random moments: %+v", count, total)
}

// killLater kills a child some time after it has begun.
func killLater(delay time.Duration) killer {
	return func(cmd *exec.Cmd, n *fifotest.Notes) {
		for n.Running.Load() == 0 {
			time.Sleep(50 * time.Microsecond)
		}
		time.Sleep(delay)
		_ = cmd.Process.Kill()
	}
}

func TestMPMC_StoppedConsumerBlocksNoOneForEver(t *testing.T) {
	q := newTestQueue(t, numberedBytes)
	n, seg := fifotest.NewNotes(t)
	cmd := fifotest.StartChild(t, childTask{role: "get", owner: 5, batch: 4, step: -1, bytes: numberedBytes}, q.FD(), seg)
	put := q.As(1)
	item := Items(1, numberedBytes)[0]
	seq := uint64(0)
	fill := func(limit uint64, timeout time.Duration) error {
		for seq < limit {
			number(&item, 0, seq+1)
			if err := put.Put(item, timeout); err != nil {
				return err
			}
			seq++
		}
		return nil
	}
	if err := fill(1000, -1); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	if err := fill(1<<20, 20*time.Millisecond); !errors.Is(err, ErrFull) {
		t.Fatalf("puts to a stopped consumer end in %v, want ErrFull", err)
	}
	_ = cmd.Process.Signal(syscall.SIGCONT)
	if err := fill(seq+1000, -1); err != nil {
		t.Fatal(err)
	}
	q.Shut()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n.Moved.Load() != seq || n.Wrong.Load() != 0 || n.Sum.Load() != seq*(seq+1)/2 {
		t.Errorf("%d messages of sum %d arrived, %d wrong; %d were put", n.Moved.Load(), n.Sum.Load(), n.Wrong.Load(), seq)
	}
}

// untilAsleep waits until so many waits for messages have begun.
func untilAsleep(t *testing.T, q *MPMC, waits uint64) {
	t.Helper()
	testkit.Until(t, "consumers sleep", func() bool { return q.Counters().EmptyWaits >= waits })
}

func TestMPMC_WakeUpThatADeadConsumerGotIsNotLost(t *testing.T) {
	q := newTestQueue(t, numberedBytes)
	_, seg := fifotest.NewNotes(t)
	first := fifotest.StartChild(t, childTask{role: "get", owner: 5, batch: 1, step: -1, bytes: numberedBytes}, q.FD(), seg)
	untilAsleep(t, q, 1)
	_ = first.Process.Signal(syscall.SIGSTOP) // it stays in the kernel's queue, in front
	got := make(chan error)
	go func() {
		_, err := q.As(6).Get(make([]byte, numberedBytes), -1)
		got <- err
	}()
	untilAsleep(t, q, 2)
	item := Items(1, numberedBytes)[0]
	number(&item, 0, 1)
	if err := q.As(1).Put(item, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the other consumer: %v", err)
	}
	_ = first.Process.Kill()
	fifotest.WaitDead(t, first)
	q.Recover(5, nil)
	checkLive(t, q)
}

func TestMPMC_DeadSleeperCostsOneWakeUp(t *testing.T) {
	q := newTestQueue(t, numberedBytes)
	_, seg := fifotest.NewNotes(t)
	cmd := fifotest.StartChild(t, childTask{role: "get", owner: 5, batch: 1, step: -1, bytes: numberedBytes}, q.FD(), seg)
	untilAsleep(t, q, 1)
	_ = cmd.Process.Kill()
	fifotest.WaitDead(t, cmd)
	put, get := q.As(1), q.As(2)
	item, buf := Items(1, numberedBytes)[0], make([]byte, numberedBytes)
	for i := range 1000 {
		number(&item, 0, uint64(i+1))
		if err := put.Put(item, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := get.Get(buf, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := q.Counters().EmptyWakes; n > 1 {
		t.Errorf("1000 puts after the death of a sleeper made %d wake-ups, want 1", n)
	}
}

func TestMPMC_ManyProcessesLoseAndRepeatNothing(t *testing.T) {
	const producers, consumers, each = 4, 3, 6000
	q := newTestQueue(t, numberedBytes)
	var putting, getting []*exec.Cmd
	var takers []*fifotest.Notes
	for c := range consumers {
		n, seg := fifotest.NewNotes(t)
		takers = append(takers, n)
		getting = append(getting, fifotest.StartChild(t, childTask{role: "get", owner: 10 + c, batch: 1 + c*4, step: -1, bytes: numberedBytes}, q.FD(), seg))
	}
	for p := range producers {
		_, seg := fifotest.NewNotes(t)
		task := childTask{role: "put", owner: 20 + p, batch: 1 + p, total: each, step: -1, producer: p, bytes: numberedBytes}
		putting = append(putting, fifotest.StartChild(t, task, q.FD(), seg))
	}
	want := uint64(0)
	for p, cmd := range putting {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		count := uint64((each + p) / (1 + p) * (1 + p))
		want += count * (count + 1) / 2
	}
	q.Shut()
	sum := uint64(0)
	for c, cmd := range getting {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		sum += takers[c].Sum.Load()
		if takers[c].Wrong.Load() != 0 {
			t.Errorf("consumer %d got %d messages out of order or torn", c, takers[c].Wrong.Load())
		}
	}
	if sum != want {
		t.Errorf("sum of what arrived = %d, want %d", sum, want)
	}
}
