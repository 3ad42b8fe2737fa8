package control

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// crew starts n loops with a member each, and ends them with the test.
func crew(t *testing.T, n int) ([]Member, []*loop.Loop) {
	t.Helper()
	var members []Member
	var loops []*loop.Loop
	for i := range n {
		l := loop.New(fmt.Sprint(i))
		ended := make(chan error, 1)
		go func() { ended <- l.Run(context.Background()) }()
		t.Cleanup(func() {
			l.Stop()
			if err := errors.Join(<-ended, l.Close()); err != nil {
				t.Error(err)
			}
		})
		members = append(members, Member{Name: fmt.Sprintf("rollout[%d]", i), Kind: "rollout", Receiver: l.NewReceiver(fmt.Sprint(i))})
		loops = append(loops, l)
	}
	return members, loops
}

// stuck makes a member's loop hang until the function that it returns is called.
func stuck(m Member) (release func()) {
	began, end := make(chan struct{}), make(chan struct{})
	m.Receiver.Control(func(*hostabi.Message) { close(began); <-end }, hostabi.Message{})
	<-began
	return func() { close(end) }
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// askNow is Group where each member answers at once.
func askNow(ctx context.Context, members []Member, ask func(i int) (State, error)) []Answer {
	return Group(ctx, members, func(i int, answer func(State, error)) { answer(ask(i)) })
}

func running(int) (State, error) { return Running, nil }

func TestGroup_EachAnswersOnItsLoopInTheOrderAsked(t *testing.T) {
	members, _ := crew(t, 3)
	members[1].Receiver.Pause() // keeps back data, not requests
	got := askNow(deadline(t, time.Minute), members, func(i int) (State, error) { return State("I am " + members[i].Name), nil })
	for i, r := range got {
		if want := (Answer{Name: members[i].Name, State: State("I am " + members[i].Name)}); r != want {
			t.Errorf("answer %d = %+v, want %+v", i, r, want)
		}
	}
	if got := askNow(t.Context(), nil, running); len(got) != 0 {
		t.Errorf("nobody answered %v", got)
	}
}

func TestGroup_AnErrorIsTheAnswerOfItsMemberAlone(t *testing.T) {
	members, _ := crew(t, 3)
	refused := Errorf(CodeRefused, "refused")
	got := askNow(deadline(t, time.Minute), members, func(i int) (State, error) {
		switch i {
		case 0:
			return "", refused
		case 1:
			panic("a defect")
		}
		return Paused, nil
	})
	if got[0].Error != refused || got[2].State != Paused || got[2].Error != nil {
		t.Errorf("answers %+v", got)
	}
	if err := got[1].Error; err == nil || err.Code != CodeFailed || !strings.Contains(err.Reason, "panic: a defect") || !strings.Contains(err.Reason, "group_test.go") {
		t.Errorf("the member that panicked answered %v", err)
	}
	again := askNow(deadline(t, time.Minute), members, running)
	for _, r := range again {
		if r.Error != nil || r.State != Running {
			t.Errorf("after the panic %s answers %+v", r.Name, r)
		}
	}
}

// A member that hangs does not hold up the others, and a request that has timed out is not carried out.
func TestGroup_OneDeadlineForAllAndWhoIsLateIsNotAskedAnyMore(t *testing.T) {
	members, _ := crew(t, 3)
	release := stuck(members[1])
	var asked atomic.Int32
	got := askNow(deadline(t, 500*time.Millisecond), members, func(int) (State, error) { asked.Add(1); return Running, nil })
	if got[0].TimedOut || got[2].TimedOut || !got[1].TimedOut || got[1].Error.Code != CodeLate || got[1].Name != "rollout[1]" {
		t.Errorf("answers %+v", got)
	}
	release()
	askNow(deadline(t, time.Minute), members[1:2], running)
	if n := asked.Load(); n != 2 {
		t.Errorf("%d were asked, want 2", n)
	}
}

func TestGroup_TheFirstAnswerCounts(t *testing.T) {
	members, _ := crew(t, 2)
	got := Group(deadline(t, time.Minute), members, func(i int, answer func(State, error)) {
		if i == 0 {
			members[0].Receiver.After(time.Millisecond, func() { answer(Paused, nil); answer(Failed, nil) })
			return
		}
		go func() { answer(Running, nil) }()
	})
	if got[0].State != Paused || got[1].State != Running {
		t.Errorf("answers %+v", got)
	}
	ctx, end := context.WithCancel(t.Context())
	asked := make(chan func(State, error), 1)
	got = Group(ctx, members[:1], func(_ int, answer func(State, error)) { asked <- answer; end() })
	if !got[0].TimedOut {
		t.Errorf("answers %+v", got)
	}
	(<-asked)(Paused, nil) // without a waiter nothing happens
}

// A worker that has ended does not keep its last status.
func TestGroup_WhoseLoopHasEndedSaysSoAtOnce(t *testing.T) {
	ended, closed, failed, later := loop.New("ended"), loop.New("closed"), loop.New("failed"), loop.New("later")
	ended.Stop()
	if err := ended.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	failed.Fail(errors.New("fault"))
	if err := failed.Run(t.Context()); err == nil {
		t.Fatal("no fault")
	}
	members, _ := crew(t, 1)
	gone := make(chan struct{})
	close(gone)
	for _, l := range []*loop.Loop{ended, closed, failed} {
		members = append(members, Member{Name: l.Name(), Receiver: l.NewReceiver(l.Name()), Gone: gone})
	}
	members = append(members, Member{Name: later.Name(), Receiver: later.NewReceiver(later.Name())})
	go func() { _ = later.Close() }() // it never ran: until it is closed it might
	for _, r := range askNow(deadline(t, time.Minute), members, running) {
		if runs := r.Name == "rollout[0]"; runs != (r.Error == nil) || !runs && r.Error.Code != CodeEnded {
			t.Errorf("%+v", r)
		}
	}
}

func TestGroup_ALoopThatEndsMeanwhileAnswers(t *testing.T) {
	for range 50 {
		l := loop.New("ending")
		ran, gone := make(chan error, 1), make(chan struct{})
		go func() {
			ran <- l.Run(context.Background())
			close(gone)
		}()
		l.Stop()
		m := []Member{{Name: "a", Receiver: l.NewReceiver("a"), Gone: gone}}
		r := askNow(deadline(t, time.Minute), m, running)[0]
		if r.TimedOut || r.Error == nil && r.State != Running || r.Error != nil && r.Error.Code != CodeEnded {
			t.Errorf("%+v", r)
		}
		if err := errors.Join(<-ran, l.Close()); err != nil {
			t.Error(err)
		}
	}
}

// The end of the loop is the answer: nothing else wakes the request, and no time has to pass.
func TestGroup_TheEndOfALoopIsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, gone, answers := loop.New("never"), make(chan struct{}), make(chan []Answer, 1)
		go func() {
			answers <- askNow(t.Context(), []Member{{Name: "a", Receiver: l.NewReceiver("a"), Gone: gone}}, running)
		}()
		synctest.Wait()
		began := time.Now()
		close(gone)
		if a := (<-answers)[0]; a.Error == nil || a.Error.Code != CodeEnded || time.Since(began) > 0 {
			t.Errorf("after %v: %+v", time.Since(began), a)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestGroup_LeavesNoGoroutineBehind(t *testing.T) {
	members, _ := crew(t, 4)
	release := stuck(members[3])
	before := runtime.NumGoroutine()
	for range 100 {
		askNow(deadline(t, 100*time.Microsecond), members, running)
	}
	testkit.Until(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	release()
}
