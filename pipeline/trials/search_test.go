package trials

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
)

// newSet returns a set of a search over one key.
func newSet(t *testing.T, change func(*search.Config)) *runs.Set {
	t.Helper()
	dir := t.TempDir()
	pipeline := filepath.Join(dir, "pipeline.toml")
	if err := os.WriteFile(pipeline, []byte("rlhost = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := search.Default()
	from, to := 0.0, 1.0
	c.Space = map[string]search.Dim{"component.x.rate": {From: &from, To: &to}}
	c.Trials, c.EnvSteps, c.Rungs.Least, c.Seeds, c.Confirm = 8, 64_000, 4000, 2, search.Confirm{Top: 1, Seeds: 2}
	change(&c)
	if err := c.Complete(0); err != nil {
		t.Fatal(err)
	}
	set, err := New(dir, "toy", pipeline, nil, Sweep{Config: c, First: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// score is the value of a run.
func score(t search.Task) float64 {
	return t.Set["component.x.rate"].(float64)*100 + float64(t.Seed) + float64(t.Until)/1000
}

func train(_ context.Context, t search.Task) (search.Outcome, error) {
	o := search.Outcome{Trial: t.Trial, Rung: t.Rung, Confirm: t.Confirm, Seed: t.Seed, EnvSteps: t.Until}
	if t.Trial == 3 {
		o.Failed(errors.New("a pole broke"))
	} else {
		o.Judged(score(t))
	}
	return o, nil
}

// timeless returns a set's journal without its times.
func timeless(t *testing.T, set *runs.Set) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(set.Dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"time":"[^"]*"|"wall_seconds":[0-9.e-]+`).ReplaceAllString(string(b), "")
}

// The journal of a synchronous search is the same with any number of jobs, whichever run ends first.
func TestSearch_IsTheSameWithAnyNumberOfJobs(t *testing.T) {
	t.Parallel()
	for _, method := range []string{search.None, search.Halving} {
		want := ""
		for _, jobs := range []int{1, 2, 8} {
			set := newSet(t, func(c *search.Config) { c.Method = method })
			var mu sync.Mutex
			turn := 0
			free := sync.NewCond(&mu)
			s := &Search{Set: set, Jobs: jobs, Train: func(ctx context.Context, task search.Task) (search.Outcome, error) {
				mu.Lock() // of two that are under way, the later one ends first
				defer mu.Unlock()
				turn++
				if own := turn; jobs > 1 && own%2 == 1 && task.Seed == 1 {
					for turn == own {
						free.Wait()
					}
				}
				free.Broadcast()
				return train(ctx, task)
			}}
			h, err := s.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if h.Best()[0].Failed() || !h.Trials[3].Failed() || len(h.Confirmed) != 1 {
				t.Errorf("%s: best %+v", method, h.Best()[0])
			}
			if got := timeless(t, set); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s with %d jobs has the journal\n%s\nwant\n%s", method, jobs, got, want)
			}
		}
	}
}

// A search that was cut at any byte of its journal, and resumed, has the journal of one that was not. Half a last line is no line.
func TestSearch_KilledAnywhereHasTheSameJournal(t *testing.T) {
	t.Parallel()
	whole := newSet(t, func(c *search.Config) { c.Method = search.Halving })
	if _, err := (&Search{Set: whole, Jobs: 2, Train: train}).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := timeless(t, whole)
	b, err := os.ReadFile(filepath.Join(whole.Dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, func(c *search.Config) { c.Method = search.Halving })
	path := filepath.Join(set.Dir, "journal.jsonl")
	cuts := []int{0, 1, len(b) - 1, len(b)}
	for i := range b {
		if b[i] == '\n' {
			cuts = append(cuts, i, i+1, i+2, i+30)
		}
	}
	for _, cut := range cuts {
		if err := os.WriteFile(path, b[:min(cut, len(b))], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Search{Set: set, Jobs: 3, Train: train}).Run(context.Background()); err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if got := timeless(t, set); got != want {
			t.Fatalf("cut at byte %d of %d: the journal is\n%s\nwant\n%s", cut, len(b), got, want)
		}
	}
}

func TestSearch_DamagedJournalIsRefused(t *testing.T) {
	t.Parallel()
	set := newSet(t, func(*search.Config) {})
	for text, want := range map[string]string{
		"{}\n":             "line 1 of the journal of toy/0001 is damaged: it must have one of orders",
		"{\"x\": 1}\n":     "unknown field",
		"nonsense\n{\"x\"": "line 1 of the journal",
		`{"outcome":{"trial":0,"seed":1,"value":1}}` + "\n": "was not ordered",
	} {
		if err := os.WriteFile(filepath.Join(set.Dir, "journal.jsonl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Search{Set: set, Jobs: 1, Train: train}).Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSearch_ThreeFailuresInARowEndItAndAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, method := range []string{search.None, search.ASHA} {
		set := newSet(t, func(c *search.Config) { c.Method, c.Trials, c.Rungs.Least = method, 16, 16_000 })
		var begun atomic.Int64
		broken := func(_ context.Context, task search.Task) (search.Outcome, error) {
			begun.Add(1)
			o := search.Outcome{Trial: task.Trial, Rung: task.Rung, Seed: task.Seed}
			o.Failed(fmt.Errorf("rate = %g is too high", task.Set["component.x.rate"]))
			return o, nil
		}
		_, err := (&Search{Set: set, Jobs: 1, Train: broken}).Run(context.Background())
		if ended := (*EndedError)(nil); !errors.As(err, &ended) || !strings.Contains(err.Error(), "is too high") || begun.Load() != 5 {
			t.Errorf("%s: %d runs began: %v", method, begun.Load(), err)
		}
		h, err := (&Search{Set: set, Jobs: 1, Train: train}).Run(context.Background())
		if err != nil || len(h.Trials) != 16 || h.Trials[0].Failed() || !h.Trials[3].Failed() {
			t.Errorf("%s resumed: %v", method, err)
		}
	}
}

func TestSearch_InterruptedRunsAreMadeAgain(t *testing.T) {
	t.Parallel()
	for _, method := range []string{search.None, search.ASHA} {
		set := newSet(t, func(c *search.Config) { c.Method, c.Trials, c.Rungs.Least = method, 16, 16_000 })
		ctx, cancel := context.WithCancel(context.Background())
		var begun atomic.Int64
		_, err := (&Search{Set: set, Jobs: 2, Train: func(ctx context.Context, task search.Task) (search.Outcome, error) {
			if begun.Add(1) == 6 {
				cancel()
				<-ctx.Done()
				o := search.Outcome{Trial: task.Trial, Rung: task.Rung, Seed: task.Seed}
				o.Failed(errors.New("interrupted"))
				return o, nil
			}
			return train(ctx, task)
		}}).Run(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", method, err)
		}
		if strings.Contains(timeless(t, set), "interrupted") {
			t.Errorf("%s: an interrupted run is in the journal", method)
		}
		h, err := (&Search{Set: set, Jobs: 2, Train: train, Trials: 20}).Run(context.Background())
		if err != nil || len(h.Trials) != 20 || len(h.Owed()) != 0 {
			t.Errorf("%s resumed with 20 trials: %d, %v", method, len(h.Trials), err)
		}
	}
}

func TestAdd_IsTriedAndChecked(t *testing.T) {
	t.Parallel()
	set := newSet(t, func(c *search.Config) { c.Trials = 2 })
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Add(set, search.Point{"component.x.rate": 2.0}); err == nil || !strings.Contains(err.Error(), "goes from 0 to 1") {
		t.Errorf("a point outside: %v", err)
	}
	if err := Add(set, search.Point{"component.x.rate": 0.99}); err != nil {
		t.Fatal(err)
	}
	if err := set.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := Add(set, search.Point{"component.x.rate": 0.99}); !errors.Is(err, runs.ErrLocked) {
		t.Errorf("a search that runs takes a point: %v", err)
	}
	h, err := (&Search{Set: set, Jobs: 1, Train: train}).Run(context.Background())
	if err != nil || len(h.Trials) != 3 || h.Best()[0].Number != 0 {
		t.Fatal(len(h.Trials), err)
	}
}

// proposer is a program that proposes 0.1, 0.2 …, and prunes odd trials at their first rung.
const proposer = `
while read -r line; do
  echo "$line" >>"$1"
  case "$line" in
  *'"ask"'*) n=$(echo "$line" | tr -dc 0-9); echo "{\"set\": {\"component.x.rate\": 0.$((n + 1))}}";;
  *'"report":1,'*|*'"report":3,'*|*'"report":5,'*) echo '{"prune": true}';;
  *'"report"'*) echo '{"prune": false}';;
  esac
done
`

// said returns the lines that the program got.
func said(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestProgram_ProposesJudgesAndIsToldTheHistory(t *testing.T) {
	t.Parallel()
	heard := filepath.Join(t.TempDir(), "heard")
	set := newSet(t, func(c *search.Config) {
		c.Method, c.Program, c.Trials, c.Confirm.Top = search.ByProgram, []string{"sh", "-c", proposer, "proposer", heard}, 5, 0
	})
	h, err := (&Search{Set: set, Jobs: 1, Train: train}).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{3, 1, 3, 1, 3} {
		if got := len(h.Trials[i].Rungs); got != want || h.Trials[i].Set["component.x.rate"] != float64(i+1)/10 {
			t.Errorf("trial %d came to %d rungs with %v", i, got, h.Trials[i].Set)
		}
	}
	lines := said(t, heard)
	if want := `{"begin":{"space":{"component.x.rate":{"from":0,"to":1}},"goal":"max","seed":1,"trials":5,"env_steps":64000}}`; lines[0] != want {
		t.Errorf("it was told %s, want %s", lines[0], want)
	}
	for _, want := range []string{`{"report":0,"env_steps":4000,"value":15.5}`, `{"report":0,"env_steps":16000,"value":27.5}`, `{"tell":0,"value":75.5}`,
		`{"tell":1,"value":25.5,"pruned":true}`, `{"tell":3,"error":"a pole broke"}`} {
		if !slices.Contains(lines, want) {
			t.Errorf("it was not told %s:\n%s", want, strings.Join(lines, "\n"))
		}
	}

	// Resumed: it gets the history before it is asked.
	if err := os.Remove(heard); err != nil {
		t.Fatal(err)
	}
	if h, err = (&Search{Set: set, Jobs: 1, Train: train, Trials: 6}).Run(context.Background()); err != nil || len(h.Trials) != 6 {
		t.Fatal(err)
	}
	lines = said(t, heard)
	asked := slices.Index(lines, `{"ask":5}`)
	for _, want := range []string{`{"begun":0,"set":{"component.x.rate":0.1}}`, `{"passed":0,"env_steps":4000,"value":15.5}`, `{"tell":4,"value":115.5}`} {
		if i := slices.Index(lines, want); i < 0 || i > asked {
			t.Errorf("before it was asked it was not told %s:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

func TestProgram_ThatAnswersNonsenseEndsTheSearch(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"read x; read x; echo nonsense; read x":                       `answered {"ask": 0} with "nonsense"`,
		"read x; read x; echo '{\"set\": {}}'; read x":                "a point outside of the space: it has no value for component.x.rate",
		"read x; echo out of ideas >&2; exit 3":                       "ended before it answered",
		"read x; read x; head -c 3000000 /dev/zero; read x":           "more than 1048576 bytes",
		"read x; read x; echo '{\"set\": {\"component.x.rate\": 7}}'": "component.x.rate is 7, and goes from 0 to 1",
	} {
		set := newSet(t, func(c *search.Config) { c.Program = []string{"sh", "-c", script} })
		_, err := (&Search{Set: set, Jobs: 1, Train: train}).Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the program of [sweep] (sh -c") {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	set := newSet(t, func(c *search.Config) { c.Program = []string{"./no-such-program"} })
	if _, err := (&Search{Set: set, Jobs: 1, Train: train}).Run(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("no program: %v", err)
	}
}

func TestLastMetric_NamesWhatThereIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, []byte("{\"a\":1,\"b\":null}\n{\"a\":2}\n{\"a\":null}\n{\"a\":"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v, err := lastMetric(path, "a"); err != nil || v != 2 {
		t.Errorf("a is %g, %v", v, err)
	}
	if _, err := lastMetric(path, "b"); err == nil || !strings.Contains(err.Error(), `no line of metrics.jsonl has the objective "b"`) || !strings.HasSuffix(err.Error(), "one of a") {
		t.Errorf("b: %v", err)
	}
}
