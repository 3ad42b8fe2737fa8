package arena

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

const (
	crowdSize   = 64
	crowdRounds = 400 // of a process that ends by itself
)

// queueUp is a process that wants to share an arena: it asks, waits until it is told its holder number, however often
// it is refused before, and works then. It says how that went.
func queueUp(s Shared) error {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("wants")
	holder, rounds := 0, 0
	for holder == 0 {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(line, "%d %d", &holder, &rounds); err != nil {
			fmt.Println("waits")
		}
	}
	s.WordsFD, s.DataFD = 3, 4
	a, err := Attach(s, holder)
	if err != nil {
		return err
	}
	fmt.Println("works")
	for i := 0; i < rounds || rounds == 0; i++ { // without an end it is to be killed
		if err := useOnce(a); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	if err := a.Close(); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// useOnce writes a block and reads it back, holding no other meanwhile.
func useOnce(a *Arena) error {
	l, err := a.Loan()
	if errors.Is(err, ErrExhausted) {
		runtime.Gosched() // the free one moved while it was looked for
		return nil
	}
	if err != nil {
		return fmt.Errorf("loan: %w", err)
	}
	stampAll(l.Bytes(), l.Handle())
	h, err := l.Commit()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if err := read(a, h); err != nil {
		return fmt.Errorf("read %v: %w", h, err)
	}
	if err := a.Release(h); err != nil {
		return fmt.Errorf("release %v: %w", h, err)
	}
	return nil
}

// crowd is the host of more processes than can share an arena at a time.
type crowd struct {
	*sharing
	waiting []*member // guarded by mu; refused, the first come first
}

// member is one of them.
type member struct {
	*process
	doomed bool
	delay  time.Duration // of its death, once it works
	turn   chan int      // gets its holder number
}

// admit gives a process a holder number, or the host's error to read and a place in the queue.
func (c *crowd) admit(m *member) (refused error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	holder, err := c.set.Grant()
	if err != nil {
		c.waiting = append(c.waiting, m)
		return err
	}
	m.turn <- holder
	return nil
}

// admitNext gives the holder number of a process that has ended and was swept to the one that has waited longest.
func (c *crowd) admitNext(swept Swept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swept.add(swept)
	if len(c.waiting) == 0 {
		return
	}
	holder, err := c.set.Grant()
	if err != nil {
		c.t.Errorf("Grant after a sweep = %v", err)
		return
	}
	c.waiting[0].turn <- holder
	c.waiting = c.waiting[1:]
}

// see sees a process through its turn.
func (c *crowd) see(m *member) {
	m.holder = <-m.turn
	rounds := crowdRounds
	if m.doomed {
		rounds = 0
	}
	fmt.Fprintln(m.in, m.holder, rounds)
	switch works := c.says(m, "works"); {
	case works && m.doomed:
		time.Sleep(m.delay) // a random moment
		m.kill()
	case works && c.says(m, "over"):
		if err := m.cmd.Wait(); err != nil {
			c.t.Errorf("process of holder %d: %v", m.holder, err)
		}
	default:
		m.kill()
	}
	swept, err := c.set.Sweep(m.holder)
	if err != nil || !m.doomed && swept != (Swept{}) {
		c.t.Errorf("Sweep of holder %d (doomed: %v) = %+v, %v", m.holder, m.doomed, swept, err)
	}
	c.admitNext(swept)
}

// says reads the next word of a process, on any goroutine.
func (c *crowd) says(m *member, want string) bool {
	var got string
	if _, err := fmt.Fscanln(m.out, &got); err != nil || got != want {
		c.t.Errorf("process of holder %d says %q, %v, want %q", m.holder, got, err, want)
		return false
	}
	return true
}

// assemble starts all processes and returns when each has asked for the arena. A third of them will be killed.
func (c *crowd) assemble(random *rand.Rand) []*member {
	all := make([]*member, crowdSize)
	for i := range all {
		all[i] = &member{
			process: start(c.t, "queue up", 0, c.a.Share()), turn: make(chan int, 1),
			doomed: i%3 == 0, delay: time.Duration(random.IntN(20_000)) * time.Microsecond,
		}
	}
	random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	for _, m := range all {
		c.says(m, "wants")
	}
	return all
}

func TestProcesses_MoreThanThereAreHoldersTakeTurns(t *testing.T) {
	if raced {
		t.Skip("the race detector sees nothing of other processes")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &crowd{sharing: newSharing(t, hostabi.MaxHolder+1)} // each process, and the host, has one at a time
	all := c.assemble(rand.New(rand.NewPCG(seed, 0)))
	refused := 0
	for _, m := range all {
		err := c.admit(m)
		if err == nil {
			continue
		}
		refused++
		if text := err.Error(); !errors.Is(err, ErrHolders) || !strings.Contains(text, "23 processes") || !strings.Contains(text, "use fewer") {
			t.Errorf("Grant = %v, want ErrHolders with the limit and what to do", err)
		}
		fmt.Fprintln(m.in, err)
		c.says(m, "waits")
	}
	if want := crowdSize - hostabi.MaxHolder; refused != want {
		t.Errorf("%d processes were refused, want %d", refused, want)
	}
	var turns sync.WaitGroup
	killed := 0
	for _, m := range all {
		if m.doomed {
			killed++
		}
		turns.Go(func() { c.see(m) })
	}
	over := make(chan struct{})
	go func() {
		turns.Wait()
		close(over)
	}()
	used := c.useUntil(over)
	st := c.a.Stats()
	t.Logf("%d processes, %d refused at first, %d killed: %d blocks written and read, %d of them by the host, none torn or stale; swept %+v, free %d of %d",
		crowdSize, refused, killed, st.Commits, used, c.swept, st.Free, c.a.Blocks())
	least := uint64(crowdSize-killed) * crowdRounds / 2
	if st.Free != c.a.Blocks() || st.Others != 0 || c.set.Holders() != 0 || c.swept.Mended != 0 || st.Commits < least {
		t.Errorf("%+v, %d holders, swept %+v; want all free, nobody there, nothing mended, at least %d commits", st, c.set.Holders(), c.swept, least)
	}
	if err := c.set.Close(); err != nil {
		t.Error(err)
	}
}

// useUntil has the host use the arena besides, and returns how often it did.
func (c *crowd) useUntil(over <-chan struct{}) (n int) {
	for {
		select {
		case <-over:
			return n
		default:
		}
		if err := useOnce(c.a); err != nil {
			c.t.Errorf("the host: %v", err)
			<-over
			return n
		}
		n++
		runtime.Gosched()
	}
}
