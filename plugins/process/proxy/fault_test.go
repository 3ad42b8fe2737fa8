package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// restless returns a program that may die as often as it likes, without a pause.
func restless(p spawn.Program) spawn.Program {
	p.Backoff = spawn.Backoff{First: time.Millisecond, Longest: time.Millisecond, Healthy: time.Hour}
	p.Restarts = 1 << 30
	return p
}

// press is a stage where a probe loans, commits, emits, leases and releases as fast as it can, and where everything
// that comes back is checked.
type press struct {
	*plugintest.Stage
	t       testing.TB
	arena   *arena.Arena
	numbers *bus.Signal
	blocks  *bus.Signal
	asks    *bus.Signal

	made, torn, stale, summed, wrong, answered atomic.Uint64
}

const (
	pressBlocks = 24
	pressBytes  = 4096
)

func newPress(t testing.TB, c component.Component) *press {
	t.Helper()
	return newPressIn(t, c, false)
}

func newPressIn(t testing.TB, c component.Component, synchronous bool) *press {
	t.Helper()
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "press", Synchronous: synchronous, Table: map[string]any{"blocks": int64(pressBlocks)}})
	m := &press{Stage: s, t: t, arena: s.Arena(pressBlocks, pressBytes, nil)}
	block := bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block}
	m.numbers, m.blocks = s.To("on_number", false, block), s.To("on_block", false, block)
	m.asks = s.To("on_ask", true, block)
	s.Handle("blocks", block, m.onBlock)
	s.Handle("numbers", block, m.onNumber)
	s.Handle("answers", bus.Options{Mode: bus.Reply, Depth: 64, Overflow: bus.Block, Peer: 77}, func(*hostabi.Message) { m.answered.Add(1) })
	return m
}

// onBlock checks a block that the probe made: its bytes count up from the number in the message.
func (m *press) onBlock(got *hostabi.Message) {
	if got.Handle == 0 {
		return // a hostile plugin's
	}
	lease, err := m.Arenas.Lease(got.Handle)
	if err != nil {
		m.stale.Add(1)
		return
	}
	defer lease.Release()
	for i, b := range lease.Bytes() {
		if b != byte(got.Inline[0]+uint64(i)) {
			m.torn.Add(1)
			return
		}
	}
	m.made.Add(1)
}

// onNumber checks the probe's reading of a block of the test, whose bytes are all T modulo 256.
func (m *press) onNumber(got *hostabi.Message) {
	if got.Split != markSum {
		return
	}
	m.summed.Add(1)
	if got.Inline[0] != uint64(byte(got.T))*pressBytes {
		m.wrong.Add(1)
	}
}

const markSum = 4242

// turn gives the probe one of each thing to do.
func (m *press) turn(i int) {
	tell := func(s *bus.Signal, msg hostabi.Message) {
		msg.Sender = 77
		if err := s.Emit(msg); err != nil {
			m.t.Errorf("emit: %v", err)
		}
	}
	tell(m.numbers, hostabi.Message{Kind: plugintest.OpMake, Inline: [2]uint64{uint64(i), 2}})
	tell(m.numbers, hostabi.Message{Kind: plugintest.OpAbort})
	kinds := []uint16{plugintest.BlockSum, plugintest.BlockHold, plugintest.BlockTwice}
	loan, err := m.arena.Loan()
	if err == nil {
		for k := range loan.Bytes() {
			loan.Bytes()[k] = byte(i)
		}
		h, err := loan.Commit()
		if err != nil {
			m.t.Errorf("commit: %v", err)
			return
		}
		kind := kinds[i%3]
		split := uint32(markSum)
		if kind == plugintest.BlockHold {
			split = 0
		}
		tell(m.blocks, hostabi.Message{Kind: kind, Handle: h, T: uint32(i), Split: split})
		if err := m.arena.Release(h); err != nil {
			m.t.Errorf("release: %v", err)
		}
	}
	if i%7 == 0 {
		tell(m.numbers, hostabi.Message{Kind: plugintest.OpRelease})
	}
}

// quiet lets the probe finish and checks that nothing is held anywhere.
func (m *press) quiet() {
	m.t.Helper()
	if err := m.numbers.Emit(hostabi.Message{Kind: plugintest.OpRelease}); err != nil {
		m.t.Error(err)
	}
	m.Until("quiet", func() bool {
		held := 0
		m.Arenas.Each(func(a *arena.Arena) {
			s := a.Stats()
			held += s.Write + s.Live + s.Zombie
		})
		return held == 0
	})
}

// children returns the processes that this one has started and that are not zombies.
func children(t testing.TB) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no list of children: %v", err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && testkit.ProcessRuns(pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestFault_KillsAtRandomMoments(t *testing.T) {
	r, log := spawntest.NewRuntime(t, spawn.Options{})
	m := newPress(t, newProxy(t, r, restless(spawntest.Self(t, "probe")), "probe"))
	kills := testkit.Kills(t, 20)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	stop := make(chan struct{})
	driven := make(chan struct{})
	rest, rested, again := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(driven)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-rest:
				rested <- struct{}{}
				<-again
			default:
			}
			for m.numbers.Connections()[0].Stats().Parked > 0 {
				time.Sleep(50 * time.Microsecond)
			}
			m.turn(i)
		}
	}()
	for done := 0; done < kills; {
		time.Sleep(time.Duration(random.IntN(25_000)) * time.Microsecond)
		for _, pid := range children(t) { // also a child that is just starting
			if unix.Kill(pid, unix.SIGKILL) == nil {
				done++
			}
		}
		if done%10 == 0 {
			rest <- struct{}{}
			<-rested
			m.quiet()
			again <- struct{}{}
		}
	}
	close(stop)
	<-driven
	m.quiet()
	st := m.Process()
	t.Logf("%d kills, %d restarts: %d blocks made, %d read, torn %d, stale %d, wrong %d; %d messages lost with a process, %d rejected",
		kills, st.Restarts, m.made.Load(), m.summed.Load(), m.torn.Load(), m.stale.Load(), m.wrong.Load(),
		m.Host.Stats.Counter("process/lost_messages/press").Value(), m.Host.Stats.Counter("process/rejected_messages/press").Value())
	if m.torn.Load()+m.stale.Load()+m.wrong.Load() > 0 || m.made.Load() == 0 || m.summed.Load() == 0 {
		t.Error("see above")
	}
	if strings.Contains(log.String(), "claim of the proxy") {
		t.Errorf("log:\n%s", log)
	}
}

// freeze stops a process, and waits until it has stopped: its threads run on for a moment.
func freeze(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "all threads are stopped", func() bool {
		threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
		for _, file := range threads {
			stat, readErr := os.ReadFile(file)
			rest := strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			if readErr != nil || !strings.HasPrefix(rest, "T") && !strings.HasPrefix(rest, "t") {
				return false
			}
		}
		return err == nil && len(threads) > 0
	})
}

func TestFault_StoppedProcessGoesOn(t *testing.T) {
	m := newPress(t, newProbe(t, spawntest.Self(t, "probe")))
	pause := 500 * time.Millisecond
	if testkit.Kills(t, 0) > 0 {
		pause = 10 * time.Second
	}
	pid := m.Process().PID
	freeze(t, pid)
	time.AfterFunc(pause, func() { _ = unix.Kill(pid, unix.SIGCONT) })
	for i := range 20 {
		m.turn(i)
	}
	m.quiet()
	if st := m.Process(); st.Restarts != 0 || st.PID != pid {
		t.Errorf("status %+v, want the same process", st)
	}
	if m.made.Load() == 0 || m.torn.Load()+m.wrong.Load() > 0 {
		t.Errorf("%d made, %d torn, %d wrong", m.made.Load(), m.torn.Load(), m.wrong.Load())
	}
}

func TestFault_StalledProcessIsNamedKilledAndReplaced(t *testing.T) {
	r, log := spawntest.NewRuntime(t, spawn.Options{})
	p := spawntest.Self(t, "probe")
	p.Stall = 200 * time.Millisecond
	m := newPress(t, newProxy(t, r, p, "probe"))
	m.Until("the stage's log", func() bool { return true })
	pid := m.Process().PID
	freeze(t, pid)
	for i := range 20 {
		m.turn(i)
	}
	testkit.Until(t, "a restart", func() bool { return m.Process().Restarts == 1 })
	m.quiet()
	if m.torn.Load()+m.wrong.Load() > 0 {
		t.Errorf("%d torn, %d wrong", m.torn.Load(), m.wrong.Load())
	}
	if got := m.States(); !slices.Equal(got, []string{component.ProcessStarting, component.ProcessRunning, component.ProcessRestarting, component.ProcessRunning}) {
		t.Errorf("the host was told that the process is %q", got)
	}
	if text := m.Log(); !strings.Contains(text, "no sign of life for 200ms while") || !strings.Contains(text, "messages wait") {
		t.Errorf("the log does not say what it waited for:\n%s%s", text, log)
	}
}

// A program that is stuck in a slot is not only killed: it prints where it was, as Go does at SIGABRT, and Python by the
// SDK's faulthandler.
func TestFault_StalledProcessSaysWhereItIs(t *testing.T) {
	r, log := spawntest.NewRuntime(t, spawn.Options{})
	p := restless(spawntest.Self(t, "probe"))
	p.Stall = 200 * time.Millisecond
	m := newPress(t, newProxy(t, r, p, "probe"))
	if err := m.numbers.Emit(hostabi.Message{Kind: plugintest.OpSleep, Inline: [2]uint64{600_000, 0}}); err != nil {
		t.Fatal(err)
	}
	m.Until("the log", func() bool {
		text := m.Log() + log.String()
		return strings.Contains(text, "SIGABRT") && strings.Contains(text, "plugintest.(*Probe).tellHost")
	})
	m.Close()
}

// stallAnother returns once a process that began to stall just now has been found out.
func stallAnother(t *testing.T, p spawn.Program) {
	t.Helper()
	m := newPress(t, newProbe(t, p))
	freeze(t, m.Process().PID)
	m.turn(0)
	testkit.Until(t, "a restart", func() bool { return m.Process().Restarts == 1 })
	m.quiet()
	m.Close()
}

func TestFault_IdleProcessIsNotStalled(t *testing.T) {
	p := spawntest.Self(t, "probe")
	p.Stall = 400 * time.Millisecond
	m := newPress(t, newProbe(t, p))
	m.turn(0)
	m.quiet()
	stallAnother(t, p)
	if st := m.Process(); st.Restarts != 0 {
		t.Errorf("status %+v, want no restart", st)
	}
}

func TestFault_RunFailsWhenTheBudgetIsSpent(t *testing.T) {
	p := restless(spawntest.Self(t, "probe"))
	p.Restarts = 2
	m := newPress(t, newProbe(t, p))
	for range 3 {
		m.turn(1)
		m.Kill()
	}
	err := m.Failure()
	if err == nil || !strings.Contains(err.Error(), "SIGKILL") || !strings.Contains(err.Error(), "`max_restarts` allows 2") {
		t.Errorf("error %v, want one about the budget", err)
	}
	if st := m.Process(); st.State != component.ProcessFailed || st.PID != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestFault_ExitSaysItsLastWords(t *testing.T) {
	m := newPress(t, newProbe(t, restless(spawntest.Self(t, "probe"))))
	if err := m.numbers.Emit(hostabi.Message{Kind: plugintest.OpExit, Inline: [2]uint64{7, 0}}); err != nil {
		t.Fatal(err)
	}
	m.Until("the log", func() bool { return strings.Contains(m.Log(), "ended with status 7") })
	// The message that made it end comes again, and the next one ends too, until somebody drops it.
	m.Close()
}

func TestArena_MoreThanAllowedIsRefused(t *testing.T) {
	p := spawntest.Self(t, "probe")
	p.Memory = 4 * 4096
	for _, size := range []int{4096, 64} { // a block has its own page, however small it is
		err := plugintest.StageError(t, newProbe(t, p), plugintest.StageOptions{Table: map[string]any{"block_bytes": int64(size)}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("4 blocks of %d bytes take 24576,", size)) ||
			!strings.Contains(err.Error(), "raise `memory`") {
			t.Errorf("error %v, want one that tells what to raise", err)
		}
	}
}

func TestStart_TooManyProcessesAreRefused(t *testing.T) {
	m := newPress(t, newProbe(t, spawntest.Self(t, "probe")))
	for range hostabi.MaxHolder - 1 { // one is the probe's
		if _, err := m.Arenas.Grant(); err != nil {
			t.Fatal(err)
		}
	}
	err := newProbe(t, spawntest.Self(t, "probe")).Start(m.Host)
	if !errors.Is(err, arena.ErrHolders) {
		t.Errorf("error %v, want %v", err, arena.ErrHolders)
	}
}

func TestStop_KillsAProcessThatDoesNotStop(t *testing.T) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{Grace: 200 * time.Millisecond})
	m := newPress(t, newProxy(t, r, spawntest.Self(t, "probe"), "probe"))
	pid := m.Process().PID
	freeze(t, pid)
	m.turn(0)
	m.OnLoop(func() {}) // it has gone as far as the ring
	if err := m.Component.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if !strings.Contains(m.Log(), "did not stop in time") {
		t.Errorf("log:\n%s", m.Log())
	}
	if testkit.ProcessRuns(pid) {
		t.Error("the process is still there")
	}
}

func TestFault_ProgramThatIsGoneIsNamed(t *testing.T) {
	p := restless(spawntest.Self(t, "probe"))
	data, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	p.Path = filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(p.Path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Restarts = 3
	m := newPress(t, newProbe(t, p))
	if err := os.Remove(p.Path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(m.Process().PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = m.Failure()
	if err == nil || !strings.Contains(err.Error(), "no such file") || !strings.Contains(err.Error(), "SIGKILL") {
		t.Errorf("error %v, want one that tells the death and the missing file", err)
	}
}

func TestFault_ProcessUnderADebuggerIsNotStalled(t *testing.T) {
	p := spawntest.Self(t, "probe")
	p.Stall = 100 * time.Millisecond
	m := newPress(t, newProbe(t, p))
	pid := m.Process().PID
	freeze(t, pid)
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		t.Skipf("this process may not trace: %v", err)
	}
	m.turn(0)
	stallAnother(t, p)
	if st := m.Process(); st.Restarts != 0 || st.PID != pid {
		t.Errorf("status %+v, want the same process", st)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL|unix.WNOHANG, nil); err != nil {
		t.Errorf("wait for the traced process: %v", err)
	}
	if err := unix.PtraceDetach(pid); err != nil {
		t.Fatalf("detach: %v", err)
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	m.quiet()
}
