package web

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Nothing is opened before somebody looks, all who look see the same show, and it is closed when the last one leaves.
func TestScreen_ShowsWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, open := 0, 0
		s := New(Options{Rate: 10, Open: func(_ context.Context, n int) (*Stage, error) {
			stage := stageOf(t, &drawing{modes: hostabi.RenderRGB, fps: 50}, plugintest.Script{}, nil)
			closed := stage.Close
			stage.Close = func() error { open--; return closed() }
			opened, open = opened+1, open+1
			return stage, nil
		}})
		time.Sleep(time.Second)
		if synctest.Wait(); opened != 0 {
			t.Fatalf("%d stages are opened before anybody looks", opened)
		}
		one := s.look()
		f := <-one.frames
		picture, err := png.Decode(bytes.NewReader(f.Picture))
		if err != nil {
			t.Fatal(err)
		}
		if r, _, b, _ := picture.At(1, 0).RGBA(); picture.Bounds().Dx() != 2 || picture.Bounds().Dy() != 1 || r != 0 || b != 0xffff {
			t.Errorf("the picture is %v with %d %d", picture.Bounds(), r, b)
		}
		two := s.look()
		if same := <-two.frames; same != f {
			t.Error("who comes later does not see the frame that is shown")
		}
		s.leave(one)
		s.leave(one) // twice is once
		before := strings.Fields((<-two.frames).Said)[1]
		time.Sleep(time.Second)
		if after := strings.Fields((<-two.frames).Said)[1]; before == after || open != 1 {
			t.Errorf("step %s, then step %s, %d stages are open", before, after, open)
		}
		s.leave(two)
		if synctest.Wait(); open != 0 || opened != 1 {
			t.Errorf("%d of %d stages are open when nobody looks", open, opened)
		}
		again := s.look()
		if f := <-again.frames; opened != 2 || f.Problem != "" {
			t.Errorf("%d stages are opened for who looks again: %+v", opened, f)
		}
		s.Close()
		if s.leave(again); open != 0 {
			t.Error("a screen that is closed has a stage")
		}
		if late := s.look(); len(late.frames) > 0 || opened != 2 {
			t.Error("a screen that is closed shows something")
		}
	})
}

// endless is an episode that does not end in a test.
func endless(int, int) int { return 1 << 30 }

// A slow environment gets its share of the time and no more, and a page at most as many pictures as are allowed.
func TestScreen_KeepsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for draws, most := range map[time.Duration]int{0: 101, 20 * time.Millisecond: 51} {
			drawn := 0
			d := &drawing{modes: hostabi.RenderRGB, fps: 1000, slow: func() { drawn++; time.Sleep(draws) }}
			s := New(Options{Rate: 10, Share: func() float64 { return 0.2 }, Open: func(context.Context, int) (*Stage, error) {
				return stageOf(t, d, plugintest.Script{Length: endless}, nil), nil
			}})
			v := s.look()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if drawn < most-2 || drawn > most {
				t.Errorf("pictures of %v: %d in ten seconds, want %d", draws, drawn, most)
			}
			s.leave(v)
			s.Close()
		}
	})
}

// times are the moments at which stages were opened.
type times struct {
	mu    sync.Mutex
	began time.Time
	list  []time.Duration
}

func (o *times) add() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, time.Since(o.began))
}

func (o *times) all() []time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

// With newer weights the next episode begins on a new stage, at most as often as opening one may cost.
func TestScreen_OpensAgainWhereItIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := &times{began: time.Now()}
		script := plugintest.Script{Length: func(int, int) int { return 5 }}
		s := New(Options{Rate: 10, Share: func() float64 { return 0.2 }, Stale: func() bool { return true }, Open: func(_ context.Context, n int) (*Stage, error) {
			opened.add()
			time.Sleep(time.Second)
			if n == 1 {
				return nil, errors.New("it is gone")
			}
			return stageOf(t, &drawing{modes: hostabi.RenderRGB, fps: 10}, script, nil), nil
		}})
		v := s.look()
		var problem string
		for len(opened.all()) < 3 {
			if f := <-v.frames; f.Problem != "" {
				problem = f.Problem
			}
		}
		at := opened.all()
		if problem != "it is gone" || at[1] < 10*time.Second || at[1] > 13*time.Second || at[2]-at[1] != time.Second+retry {
			t.Errorf("%q, opened at %v", problem, at)
		}
		s.leave(v)
		s.Close()

		opened = &times{began: time.Now()}
		s = New(Options{Rate: 10, Stale: func() bool { return true }, Open: func(context.Context, int) (*Stage, error) {
			opened.add()
			return stageOf(t, &drawing{modes: hostabi.RenderRGB, fps: 10}, plugintest.Script{Length: endless}, nil), nil
		}})
		v = s.look()
		time.Sleep(long + time.Second)
		if at := opened.all(); len(at) != 2 {
			t.Errorf("an episode without end is opened at %v", at)
		}
		s.leave(v)
		s.Close()
	})
}

// Keys of pages are a person's: they take over, are held until they are released, and an action that is not legal is a note.
func TestScreen_TakesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var made []int32
		note := func(at plugintest.At) float32 {
			mu.Lock()
			defer mu.Unlock()
			made = append(made, at.Action)
			return 0
		}
		takenSince := func() (taken []int32) {
			mu.Lock()
			defer mu.Unlock()
			taken, made = made, nil
			return taken
		}
		script := plugintest.Script{Actions: 3, Length: endless, Reward: note,
			Legal: func(_ plugintest.At, value int) bool { return value < 2 }}
		keys := play.Keys{"a": {1}, "b": {2}, play.None: {0}}
		s := New(Options{Rate: 10, Open: func(context.Context, int) (*Stage, error) {
			return stageOf(t, &drawing{modes: hostabi.RenderText, fps: 10}, script, keys), nil
		}})
		page, err := Page(s, "it's <scripted>", keys)
		if err != nil {
			t.Fatal(err)
		}
		press := func(form string) int {
			q := httptest.NewRequest(http.MethodPost, "/key", strings.NewReader(form))
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			page.ServeHTTP(w, q)
			return w.Code
		}
		v := s.look()
		wait := func(what string, is func(f *frame) bool) {
			t.Helper()
			for deadline := time.After(time.Minute); ; {
				select {
				case f := <-v.frames:
					if is(f) {
						return
					}
				case <-deadline:
					t.Fatal("never: " + what)
				}
			}
		}
		press("key=a")
		wait("the person plays", func(f *frame) bool { return f.By == play.Person && strings.Contains(f.Text, "<b onclick") })
		takenSince()
		time.Sleep(time.Second)
		press("key=a&released=1")
		synctest.Wait()
		if taken := takenSince(); len(taken) < 9 || taken[0] != 1 || taken[len(taken)-1] != 1 {
			t.Errorf("a held key takes %v", taken)
		}
		time.Sleep(200 * time.Millisecond)
		takenSince()
		time.Sleep(time.Second)
		if taken := takenSince(); len(taken) < 9 || taken[0] != 0 {
			t.Errorf("without a key it takes %v", taken)
		}
		press("key=b")
		wait("a note says that it is not legal", func(f *frame) bool { return strings.Contains(f.Note, "2 is not legal now") })
		press("key=p")
		wait("paused", func(f *frame) bool { return f.Note == "paused" })
		if code := press("key=" + url.QueryEscape(strings.Repeat("x", 2000))); code != http.StatusBadRequest {
			t.Errorf("a long key: %d", code)
		}
		s.leave(v)
		s.Close()
		for range maxPresses {
			press("key=a")
		}
		if code := press("key=a"); code != http.StatusServiceUnavailable {
			t.Errorf("one key more than wait: %d", code)
		}
	})
}

// A game whose episodes are over, or that fails, ends its screen, which shows the last frame until then.
func TestScreen_EndsWithItsGame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []error{nil, errors.New("no colours left")} {
			var ended []error
			s := New(Options{Rate: 10, Ended: func(err error) { ended = append(ended, err) }, Open: func(context.Context, int) (*Stage, error) {
				d := &drawing{modes: hostabi.RenderRGB | hostabi.RenderText, fps: 10}
				stage := stageOf(t, d, plugintest.Script{Length: func(int, int) int { return 3 }}, nil)
				stage.Show.Episodes, d.fault = 2, fault
				return stage, nil
			}})
			v := s.look()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if len(ended) != 1 || !errors.Is(ended[0], fault) {
				t.Errorf("it ends with %v, want %v once", ended, fault)
			}
			if f := <-v.frames; fault == nil && f.Note != "terminated" || fault != nil && f.Problem != fault.Error() {
				t.Errorf("the last frame is %+v", f)
			}
			s.leave(v)
			s.Close()
		}
	})
}
