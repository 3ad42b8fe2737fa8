package runner

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"
)

// push adds an episode whose return is its length.
func push(w *Window, env, length int) {
	w.Push(trajectory.Episode{Return: float32(length), Length: uint32(length), Env: uint32(env)})
}

func TestWindowIsFullWhenEveryEnvironmentHasAnEpisodeInIt(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, envs int
		order      []int // environments in the order in which their episodes end
		full       bool
		length     int
	}{
		{name: "nothing has ended", size: 2, envs: 1},
		{name: "too few episodes of one environment", size: 3, envs: 1, order: []int{0, 0}, length: 2},
		{name: "enough of one environment", size: 3, envs: 1, order: []int{0, 0, 0}, full: true, length: 3},
		{name: "more of one environment", size: 3, envs: 1, order: []int{0, 0, 0, 0, 0}, full: true, length: 3},
		// Few environments: the newest ones, back to the last of each.
		{name: "each environment once, too few", size: 6, envs: 3, order: []int{2, 0, 1}, length: 3},
		{name: "the last ones span every environment", size: 4, envs: 2, order: []int{0, 0, 0, 1, 0, 1}, full: true, length: 4},
		{name: "one has not ended yet", size: 4, envs: 2, order: []int{0, 0, 0, 0, 0, 0}, length: 4},
		{name: "the fast one goes on while one is slow", size: 4, envs: 2, order: []int{0, 0, 1, 0, 0, 0, 0, 0}, full: true, length: 6},
		{name: "the slow one ends and the window shrinks", size: 4, envs: 2, order: []int{1, 0, 0, 0, 0, 0, 1}, full: true, length: 4},
		// Many: a share of each.
		{name: "as many environments as the size", size: 3, envs: 3, order: []int{0, 0, 2, 0, 1}, full: true, length: 3},
		{name: "more environments than the size", size: 2, envs: 4, order: []int{0, 1, 2, 3}, full: true, length: 4},
		{name: "more environments than the size, one missing", size: 2, envs: 4, order: []int{0, 1, 2, 0, 1, 2}, length: 3},
		{name: "two of each, one lacks the second", size: 4, envs: 3, order: []int{0, 0, 1, 1, 2, 0, 0, 0, 1}, length: 5},
		{name: "two of each", size: 4, envs: 3, order: []int{0, 0, 1, 1, 2, 0, 0, 2, 1}, full: true, length: 6},
		{name: "more environments than were announced", size: 2, envs: 1, order: []int{0, 7, 0}, length: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWindow(c.size)
			w.SetEnvs(c.envs)
			for _, env := range c.order {
				push(w, env, 1)
			}
			if w.Full() != c.full || w.Len() != c.length {
				seen, envs := w.Coverage()
				t.Errorf("Full = %v with %d episodes of %d of %d environments, want %v with %d",
					w.Full(), w.Len(), seen, envs, c.full, c.length)
			}
		})
	}
}

// clock runs environments side by side and pushes their episodes as they end. length says how long an episode is
// that starts at a step.
type clock struct {
	w      *Window
	left   []int // steps to the end of the running episode
	began  []int
	step   int
	length func(step int) (steps int)
	value  func(steps int) float32
}

func newClock(size, envs int, length func(step int) int, value func(steps int) float32) *clock {
	c := &clock{w: NewWindow(size), left: make([]int, envs), began: make([]int, envs), length: length, value: value}
	c.w.SetEnvs(envs)
	for i := range c.left {
		c.left[i] = length(0)
	}
	return c
}

func (c *clock) tick() {
	c.step++
	for env := range c.left {
		if c.left[env]--; c.left[env] > 0 {
			continue
		}
		steps := c.step - c.began[env]
		c.w.Push(trajectory.Episode{Return: c.value(steps), Length: uint32(steps), Env: uint32(env)})
		c.began[env], c.left[env] = c.step, c.length(c.step)
	}
}

// exponential returns lengths with that mean before they are cut at the limit.
func exponential(random *rand.Rand, mean float64, limit int) int {
	return min(1+int(random.ExpFloat64()*mean), limit)
}

func asReturn(steps int) float32 { return float32(steps) }

// TestS8EarlyFinishersDoNotFillTheWindow is the lie that the rule is for: of 256 environments with episodes of 194
// steps on average, the first hundred to end have lasted 38.
func TestS8EarlyFinishersDoNotFillTheWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const trueMean = 194
	c := newClock(100, 256, func(int) int { return exponential(random, 216, 500) }, asReturn)
	for c.w.Len() < 100 {
		c.tick()
	}
	if mean := c.w.Mean(); mean > 60 {
		t.Fatalf("the first 100 episodes have mean %.0f: not the case that the test is about", mean)
	}
	if c.w.Full() {
		t.Errorf("full after the first 100 episodes, with a mean of %.0f", c.w.Mean())
	}
	for !c.w.Full() {
		c.tick()
	}
	if c.step < 300 {
		t.Errorf("full at step %d, when episodes of up to 500 steps are still out", c.step)
	}
	if mean := c.w.Mean(); math.Abs(mean-trueMean) > 0.1*trueMean {
		t.Errorf("first full with a mean of %.0f, want about %d", mean, trueMean)
	}
	for range 5000 {
		if mean := c.w.Mean(); c.w.Full() && math.Abs(mean-trueMean) > 0.2*trueMean {
			t.Fatalf("step %d: full with a mean of %.0f, want about %d", c.step, mean, trueMean)
		}
		c.tick()
	}
}

// The same lie in the other direction and in the middle of a run: where to end early is good, the first to end
// under a new policy are its successes.
func TestS8EarlySuccessesOfANewPolicyDoNotFillTheWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const change, limit, quick = 2000, 500, 80
	started, succeeded := 0, 0
	c := newClock(100, 256, func(step int) int {
		if step < change {
			return limit - random.IntN(20)
		}
		if started++; random.IntN(10) < 4 {
			succeeded++
			return quick
		}
		return limit
	}, func(steps int) float32 { return -float32(steps) })
	for c.step < change {
		c.tick()
	}
	worst := math.Inf(-1)
	for range 2000 {
		c.tick()
		if c.w.Full() {
			worst = math.Max(worst, c.w.Mean())
		}
	}
	// 40 % of -80 and 60 % of -500; the last hundred alone read -80 for a while.
	if want := -332.0; worst > want+40 {
		t.Errorf("full with a mean of %.0f, want not above about %.0f", worst, want)
	}
}

func TestWindowOfEvenEpisodesIsTheLastOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	c := newClock(100, 32, func(int) int { return 400 + random.IntN(101) }, asReturn)
	for !c.w.Full() {
		c.tick()
	}
	for range 10000 {
		c.tick()
		if c.w.Len() != 100 || !c.w.Full() {
			t.Fatalf("step %d: window of %d episodes, full %v; want the last 100", c.step, c.w.Len(), c.w.Full())
		}
	}
}

// naive is a window that keeps everything and looks at all of it each time.
type naive struct {
	size, envs int
	all        []trajectory.Episode
}

func (n *naive) window() (episodes []trajectory.Episode, full bool) {
	byEnv := make([][]int, n.envs)
	for i, e := range n.all {
		byEnv[e.Env] = append(byEnv[e.Env], i)
	}
	need, seen := part(n.size, n.envs), 0
	oldest := max(0, len(n.all)-n.size)
	for _, of := range byEnv {
		if len(of) >= max(need, 1) {
			seen++
		}
		for _, i := range of[max(0, len(of)-need):] {
			episodes = append(episodes, n.all[i])
		}
		if len(of) > 0 {
			oldest = min(oldest, of[len(of)-1])
		}
	}
	if need == 0 {
		episodes = n.all[oldest:]
	}
	return episodes, len(episodes) >= n.size && seen == n.envs
}

func TestWindowEqualsNaiveOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		size, envs := 1+random.IntN(20), 1+random.IntN(30)
		w, n := NewWindow(size), naive{size: size, envs: envs}
		w.SetEnvs(envs)
		for range 2000 {
			// The higher environments end rarely.
			env := min(random.IntN(envs), random.IntN(envs))
			e := trajectory.Episode{Return: float32(random.IntN(1000)), Length: uint32(random.IntN(500)), Env: uint32(env)}
			w.Push(e)
			n.all = append(n.all, e)
			if random.IntN(20) > 0 {
				continue
			}
			checkWindow(t, w, &n, seed)
		}
	}
}

func checkWindow(t *testing.T, w *Window, n *naive, seed uint64) {
	t.Helper()
	want, full := n.window()
	sum, lengths := 0.0, 0.0
	for _, e := range want {
		sum += float64(e.Return)
		lengths += float64(e.Length)
	}
	if w.Len() != len(want) || w.Full() != full || w.Mean() != sum/float64(len(want)) ||
		w.MeanLength() != lengths/float64(len(want)) {
		t.Fatalf("seed %d: window of %d episodes, full %v, mean %v; want %d, %v, %v", seed, w.Len(), w.Full(), w.Mean(),
			len(want), full, sum/float64(len(want)))
	}
}

func TestWindowKeepsItsEpisodesWhenTheNumberOfEnvironmentsChanges(t *testing.T) {
	w := NewWindow(4)
	push(w, 0, 7)
	for _, envs := range []int{2, 8, 5, 2, 1, 3} {
		w.SetEnvs(envs)
		if w.Len() != 1 || w.Mean() != 7 {
			t.Errorf("%d episodes with mean %v after SetEnvs(%d), want 1 with 7", w.Len(), w.Mean(), envs)
		}
	}
	for env := range 3 {
		push(w, env, 1)
		push(w, env, 3)
	}
	if !w.Full() || w.Len() != 6 || w.Mean() != 2 {
		t.Errorf("%d episodes with mean %v, full %v; want 6 with 2, full", w.Len(), w.Mean(), w.Full())
	}
}

func TestWindowForgetsAnEnvironmentThatNeverEnds(t *testing.T) {
	w := NewWindow(4)
	w.SetEnvs(2)
	push(w, 1, 1)
	for range 2 * episodesPerEnv {
		push(w, 0, 1)
	}
	if w.Len() > 2*episodesPerEnv || w.Full() {
		t.Errorf("window of %d episodes, full %v; want at most %d and not full", w.Len(), w.Full(), 2*episodesPerEnv)
	}
	push(w, 1, 1)
	if !w.Full() || w.Len() != 4 {
		t.Errorf("window of %d episodes, full %v after the slow one has ended again; want 4 and full", w.Len(), w.Full())
	}
}

func TestFewerEnvironmentsNeedNotWaitForThoseThatAreGone(t *testing.T) {
	for _, size := range []int{2, 8} {
		w := NewWindow(size)
		w.SetEnvs(4)
		for range 4 {
			for _, env := range []int{3, 0, 1} {
				push(w, env, 1)
			}
		}
		if w.Full() {
			t.Error("full without environment 2")
		}
		w.SetEnvs(2)
		if !w.Full() {
			t.Errorf("window of %d episodes is not full with the two environments that are left", w.Len())
		}
	}
}

func TestUncoveredWindowWaitsForEveryEnvironmentAgain(t *testing.T) {
	for _, size := range []int{2, 4} {
		w := NewWindow(size)
		w.SetEnvs(2)
		for range 2 {
			push(w, 0, 10)
			push(w, 1, 20)
		}
		w.Uncover()
		if w.Full() || w.Mean() != 15 {
			t.Errorf("full %v with mean %v, want not full with 15", w.Full(), w.Mean())
		}
		for range 3 {
			push(w, 0, 30)
		}
		if w.Full() {
			t.Error("full although environment 1 has not ended again")
		}
		push(w, 1, 30)
		if !w.Full() {
			t.Error("not full although both have ended again")
		}
	}
}

func TestReturnsThatAreNotFiniteAreGoneWithTheirEpisode(t *testing.T) {
	w := NewWindow(2)
	for _, v := range []float64{1, math.NaN(), math.Inf(1), 3, 5} {
		w.Push(trajectory.Episode{Return: float32(v)})
	}
	if got := w.Mean(); got != 4 {
		t.Errorf("mean = %v, want 4", got)
	}
	w.Push(trajectory.Episode{Return: float32(math.NaN())})
	if got := w.Mean(); !math.IsNaN(got) {
		t.Errorf("mean with a NaN = %v, want NaN", got)
	}
	if std := w.Std(); !math.IsNaN(std) {
		t.Errorf("standard deviation with a NaN = %v, want NaN", std)
	}
}

func TestEnormousReturnDoesNotSpoilTheMeanForEver(t *testing.T) {
	w := NewWindow(2)
	w.Push(trajectory.Episode{Return: math.MaxFloat32})
	for range resumEvery {
		push(w, 0, 3)
	}
	if got := w.Mean(); got != 3 {
		t.Errorf("mean = %v, want 3", got)
	}
}

func TestStandardDeviation(t *testing.T) {
	w := NewWindow(4)
	for _, v := range []float32{1e6 + 1, 1e6 - 1, 1e6 + 1, 1e6 - 1} {
		w.Push(trajectory.Episode{Return: v})
	}
	if got := w.Std(); got != 1 {
		t.Errorf("standard deviation %v, want 1", got)
	}
}

func TestEnvironmentBeyondAllRunsIsRefused(t *testing.T) {
	w := NewWindow(2)
	if w.Push(trajectory.Episode{Env: math.MaxUint32}) || w.Episodes() != 0 {
		t.Error("an episode of environment 2^32-1 was taken")
	}
}

func TestRestoredWindowGoesOnBitForBit(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		size, envs := 1+random.IntN(50), 1+random.IntN(50)
		unbroken := NewWindow(size)
		unbroken.SetEnvs(envs)
		feed := func(n int, windows ...*Window) {
			for range n {
				e := trajectory.Episode{Return: random.Float32() * 1e3, Length: uint32(random.IntN(9)),
					Env: uint32(min(random.IntN(envs), random.IntN(envs), random.IntN(envs)))}
				for _, w := range windows {
					w.Push(e)
				}
			}
		}
		feed(random.IntN(3000), unbroken)
		resumed := NewWindow(size)
		if err := resumed.Restore(unbroken.State(), unbroken.Append(nil)); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if got, want := describe(resumed), describe(unbroken); got != want {
				t.Fatalf("seed %d: restored window is %s, want %s", seed, got, want)
			}
			feed(random.IntN(200), unbroken, resumed)
		}
	}
}

func describe(w *Window) string {
	seen, envs := w.Coverage()
	return fmt.Sprintf("%d of %d, envs %d of %d, full %v, mean %x, length %x, std %x",
		w.Len(), w.Episodes(), seen, envs, w.Full(), w.Mean(), w.MeanLength(), w.Std())
}

func TestDamagedWindowIsNotRestored(t *testing.T) {
	good := NewWindow(3)
	good.SetEnvs(2)
	push(good, 0, 1)
	push(good, 1, 2)
	state, saved := good.State(), good.Append(nil)
	alien := append([]byte(nil), saved...)
	alien[11] = 0xff // environment
	for what, c := range map[string]struct {
		state WindowState
		saved []byte
	}{
		"half an episode":             {state, saved[:13]},
		"more episodes than have run": {WindowState{Envs: 2, Episodes: 1}, saved},
		"a sum that is no number":     {WindowState{Envs: 2, Episodes: 2, Sum: math.NaN()}, saved},
		"negative environments":       {WindowState{Envs: -1, Episodes: 2}, saved},
		"too many environments":       {WindowState{Envs: maxWindowEnvs + 1, Episodes: 2}, saved},
		"too many episodes":           {WindowState{Envs: 2, Episodes: math.MaxUint64}, saved},
		"an environment beyond all":   {state, alien},
	} {
		w := NewWindow(3)
		if err := w.Restore(c.state, c.saved); !errors.Is(err, ErrWindow) || w.Len() != 0 {
			t.Errorf("%s: error %v and %d episodes, want ErrWindow and none", what, err, w.Len())
		}
	}
}

func TestPushDoesNotAllocate(t *testing.T) {
	w := NewWindow(100)
	w.SetEnvs(32)
	env := 0
	warm := func() {
		push(w, env, 10)
		env = (env + 1) % 32
	}
	for range 1000 {
		warm()
	}
	if n := testing.AllocsPerRun(1000, warm); n != 0 {
		t.Errorf("Push allocates %v times", n)
	}
}

func BenchmarkPush(b *testing.B) {
	for _, envs := range []int{32, 1024} {
		b.Run(fmt.Sprintf("envs=%d", envs), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			w := NewWindow(100)
			w.SetEnvs(envs)
			for b.Loop() {
				push(w, random.IntN(envs), 10)
			}
		})
	}
}

func TestClearedWindowGoesOnCounting(t *testing.T) {
	w := NewWindow(4)
	w.SetEnvs(2)
	for i := range 10 {
		w.Push(trajectory.Episode{Return: 5, Length: 3, Env: uint32(i % 2)})
	}
	w.Pass()
	w.Clear()
	if _, envs := w.Coverage(); w.Len() != 0 || w.Full() || w.Episodes() != 11 || envs != 2 || !math.IsNaN(w.Mean()) {
		t.Errorf("cleared: %d episodes kept, full %v, %d in all, %d envs, mean %v", w.Len(), w.Full(), w.Episodes(), envs, w.Mean())
	}
	for i := range 4 {
		w.Push(trajectory.Episode{Return: 7, Length: 1, Env: uint32(i % 2)})
	}
	if !w.Full() || w.Mean() != 7 {
		t.Errorf("full %v with a mean of %v, want true, 7", w.Full(), w.Mean())
	}
}

// A window may have an episode of an environment beyond the announced number, while instances come or go: it can be restored.
func TestWindow_RestoresEpisodesOfEnvironmentsThatHaveGone(t *testing.T) {
	w := NewWindow(4)
	w.SetEnvs(3)
	push(w, 2, 1)
	state := w.State()
	state.Envs = 2
	if err := NewWindow(4).Restore(state, w.Append(nil)); err != nil {
		t.Error(err)
	}
}
