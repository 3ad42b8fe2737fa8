package wrap

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// driven makes steps of a world whose agents begin again, with wrappers around it.
func driven(t *testing.T, steps int, list []env.Wrapper, each func(step int, d *env.Driver)) {
	t.Helper()
	p, err := New(plugintest.NewLives(2, func(agent, _ int) int { return []int{3, 4}[agent] }), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 1, Autoreset: hostabi.SameStep}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	for step := range steps {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		each(step, d)
	}
}

// The discounted return of an agent begins again with its life: it is what it would be if the agent were alone.
func TestRewardNormalize_BeginsAnewWithEachLife(t *testing.T) {
	var alone []float32
	d := discounted{variance: 1, count: 1e-4}
	l := normalizeLayer{gamma: 0.5, epsilon: 1e-8}
	for step := range 12 {
		d.add(1, l.gamma)
		alone = append(alone, within(d.scaled(1, l.epsilon), 10))
		if step%3 == 2 {
			d.sum = 0
		}
	}
	var got []float32
	driven(t, 12, []env.Wrapper{{"reward_normalize": map[string]any{"gamma": 0.5}}}, func(_ int, d *env.Driver) {
		got = append(got, d.Result(trajectory.ShapedReward).Float32()[0])
	})
	if !slices.Equal(got, alone) {
		t.Errorf("normalised rewards %v, want %v", got, alone)
	}
}

// A time limit ends the lives that run, and the world's episode.
func TestTimeLimit_EndsTheLivesThatRun(t *testing.T) {
	var ends []byte
	driven(t, 12, []env.Wrapper{{"time_limit": int64(6)}}, func(_ int, d *env.Driver) {
		for agent := range 2 {
			ends = append(ends, d.Terminated()[agent]|d.Truncated()[agent]<<1)
		}
	})
	third := []byte{0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 2} // the first agent dies in steps 3 and 6, the other in 4 and is cut off in 6
	if !slices.Equal(ends, slices.Concat(third, third)) {
		t.Errorf("ends %v, want %v twice", ends, third)
	}
}

// noting is a module that notes where the host says that episodes begin, and leaves rewards or actions as they are.
type noting struct {
	writes trajectory.Column
	dtype  hostabi.DType
	seen   *[]byte
	column [2][]byte
}

func (m *noting) Hash() string              { return "noting" }
func (m *noting) DataDigest() string        { return "" }
func (m *noting) Writes() trajectory.Column { return m.writes }
func (m *noting) Column(i int) []byte       { return m.column[i] }
func (m *noting) Close() error              { return nil }

func (m *noting) Columns() []hostabi.ManifestColumn {
	return []hostabi.ManifestColumn{{Name: columnBegins, DType: hostabi.U8}, {Name: m.writes.String(), DType: m.dtype, Flags: hostabi.ColumnWrite}}
}

func (m *noting) New(o env.Options, agents int, columns []ModuleColumn) (ModuleInstance, error) {
	for i, c := range columns {
		m.column[i] = make([]byte, c.Rows*o.Envs*agents*c.Elems*c.DType.Bytes())
	}
	return m, nil
}

func (m *noting) Call() error {
	*m.seen = append(*m.seen, m.column[0]...)
	return nil
}

// The column wrapper_begins is each agent's own: it is 1 in the first step of each of its lives, whatever the others do.
func TestModule_WrapperBeginsIsOfEachAgent(t *testing.T) {
	for writes, dtype := range map[trajectory.Column]hostabi.DType{trajectory.ShapedReward: hostabi.F32, trajectory.Action: hostabi.I32} {
		var seen, want []byte
		load := func(ModuleTable) (Module, error) { return &noting{writes: writes, dtype: dtype, seen: &seen}, nil }
		p, err := New(plugintest.NewLives(2, func(agent, _ int) int { return []int{3, 4}[agent] }), []env.Wrapper{{"use": "noting.wasm"}}, load)
		if err != nil {
			t.Fatal(err)
		}
		d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 2, Autoreset: hostabi.SameStep}})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Reset(nil, []uint64{1, 2}); err != nil {
			t.Fatal(err)
		}
		for step := range 12 {
			clear(d.Action())
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
			both := []byte{flagOf(step%3 == 0), flagOf(step%4 == 0)}
			want = append(append(want, both...), both...)
		}
		if !slices.Equal(seen, want) {
			t.Errorf("a module of %v sees beginnings %v, want %v", writes, seen, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func flagOf(yes bool) byte {
	if yes {
		return 1
	}
	return 0
}
