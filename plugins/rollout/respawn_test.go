package rollout

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// soloists is an env.Plugin of agents that have nothing to do with each other, so many in an environment. Each has a stream of random
// numbers of its own, which says when its lives end, and begins again in the same step.
type soloists struct {
	agents int
	dark   bool // with a column that says who acts, where all always do
	tells  bool // an info of each life that begins, and what is no number in other rows
	spec   hostabi.EnvSpec
}

func newSoloists(agents int, dark bool) *soloists {
	p := &soloists{agents: agents, dark: dark, spec: hostabi.EnvSpec{Name: "soloists@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep}}
	var flags hostabi.TensorFlags
	if agents > 1 {
		flags = hostabi.TensorPerAgent
		p.spec.Groups = []hostabi.Group{{Name: "soloists", Agents: agents}}
	}
	p.spec.Tensors = []hostabi.Tensor{
		{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2, Flags: flags}, {Role: hostabi.RoleObservation, DType: hostabi.F32, Flags: flags},
		{Role: hostabi.RoleReward, DType: hostabi.F32, Flags: flags}, {Role: hostabi.RoleTerminated, DType: hostabi.U8, Flags: flags},
		{Role: hostabi.RoleTruncated, DType: hostabi.U8, Flags: flags}, {Role: hostabi.RoleFinalObservation, DType: hostabi.F32, Flags: flags},
	}
	if dark {
		p.spec.Tensors = append(p.spec.Tensors, hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8, Flags: flags})
	}
	return p
}

func (p *soloists) Spec() hostabi.EnvSpec { return p.spec }
func (p *soloists) Hash() string          { return fmt.Sprint("soloists", p.agents) }
func (p *soloists) Close() error          { return nil }

func (p *soloists) NewEnv(o env.Options) (env.Env, error) {
	return &soloistsEnv{soloists: p, draws: make([]uint64, o.Envs*p.agents)}, o.Check(&p.spec, 1)
}

type soloistsEnv struct {
	*soloists
	block env.Block
	draws []uint64
}

func (e *soloistsEnv) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *soloistsEnv) Renew() error           { clear(e.draws); return nil }
func (e *soloistsEnv) Close() error           { return nil }
func (e *soloistsEnv) Bind(b env.Block) error { e.block = b; return nil }

func (e *soloistsEnv) Snapshot() (state []byte, err error) {
	for _, draw := range e.draws {
		state = binary.LittleEndian.AppendUint64(state, draw)
	}
	return state, nil
}

func (e *soloistsEnv) Restore(b []byte) error {
	for i := range e.draws {
		e.draws[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}

// Reset begins with the agent's number, so that the same agent is the same in environments of any size.
func (e *soloistsEnv) Reset(t int, mask []uint8, _ []uint64) error {
	for i := range e.draws {
		if mask == nil || mask[i/e.agents] != 0 {
			e.draws[i] = env.Seed(7, i)
			e.show(t, i)
			e.tell(t, i, true)
		}
	}
	return nil
}

func (e *soloistsEnv) Step(t int) error {
	tr := e.block.Trajectory
	for i := range e.draws {
		e.draws[i] = env.Seed(e.draws[i], int(tr.Row(trajectory.Action, t).Int32()[i]))
		x := e.draws[i]
		tr.Row(trajectory.Reward, t).Float32()[i] = float32(x>>40) * 0x1p-24
		tr.Row(trajectory.Terminated, t).Data[i] = flag(x%7 == 0)
		tr.Row(trajectory.Truncated, t).Data[i] = flag(x%7 == 1)
		tr.Row(trajectory.FinalObs, 0).Float32()[i] = 0
		if x%7 < 2 {
			tr.Row(trajectory.FinalObs, 0).Float32()[i] = float32(x>>20&0xfff) + 5000
		}
		e.show(t+1, i)
		e.tell(t+1, i, x%7 < 2)
	}
	return nil
}

// born is the info of a life that begins.
func (e *soloistsEnv) born(i int) float32 { return float32(e.draws[i] & 0xff) }

func (e *soloistsEnv) tell(t, i int, begins bool) {
	if !e.tells {
		return
	}
	e.block.Row(trajectory.ResetInfo, t).Float32()[i] = float32(math.NaN())
	if begins {
		e.block.Row(trajectory.ResetInfo, t).Float32()[i] = e.born(i)
	}
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func (e *soloistsEnv) show(t, i int) {
	e.block.Row(trajectory.Obs, t).Float32()[i] = float32(e.draws[i] >> 20 & 0xfff)
	if e.dark {
		e.block.Acts(t)[i] = 1
	}
}

// Agents that begin again while their environment continues have the same rows as if each were alone in an environment: rewards, ends, last
// observations, bootstrap values, ages, states of a recurrent policy, and episodes.
func TestRollout_AgentsThatRespawnAreAsIfEachWereAlone(t *testing.T) {
	const rows, agents, horizon = 6, 3, 5
	type seen struct {
		blocks   []map[trajectory.Column][]byte
		episodes []trajectory.Episode
	}
	play := func(each int, dark bool) (all seen) {
		memory := trajectory.Memory{State: 1, Chunk: horizon}
		r := newRig(t, rigOptions{plugin: newSoloists(each, dark), memory: memory, config: func(c *config) { c.Envs, c.Splits, c.Horizon = rows/each, 1, horizon }})
		r.judge = func(tr trajectory.Trajectory, q trajectory.ActRequest) {
			before, behind := tr.Row(trajectory.CoreState, tr.Schema.StateRow(q.T)).Float32(), []float32(nil)
			if !q.ValueOnly {
				behind = tr.Row(trajectory.CoreState, tr.Schema.StateRow(q.T+1)).Float32()
			}
			for i := range rows {
				obs := tr.Row(trajectory.Obs, q.T).Float32()[i]
				state := before[i]
				if tr.Ages(q.T)[i] == 0 {
					state = 0
				}
				tr.Row(trajectory.Value, q.T).Float32()[i] = obs + state
				if behind != nil {
					behind[i] = state + 1 // the steps of the episode
				}
				if q.Bootstrap && tr.Row(trajectory.Truncated, q.T-1).Data[i] != 0 {
					tr.Row(trajectory.Bootstrap, q.T-1).Float32()[i] = tr.Row(trajectory.FinalObs, 0).Float32()[i]
				}
			}
		}
		columns := []trajectory.Column{trajectory.Obs, trajectory.Action, trajectory.Reward, trajectory.Terminated, trajectory.Truncated, trajectory.Valid,
			trajectory.Value, trajectory.Bootstrap, trajectory.Age, trajectory.CoreState}
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			block := map[trajectory.Column][]byte{}
			for _, c := range columns {
				block[c] = bytes.Clone(tr.Bytes(c))
			}
			// The bootstrap value of a row that is not truncated is nobody's.
			for i, cut := range tr.Bytes(trajectory.Truncated) {
				if cut == 0 {
					clear(block[trajectory.Bootstrap][4*i : 4*i+4])
				}
			}
			all.blocks = append(all.blocks, block)
		})
		r.MustRun(func() bool { return len(all.blocks) >= 40 })
		all.blocks, all.episodes = all.blocks[:40], r.episodes
		return all
	}
	alone := play(1, false)
	for i := range alone.episodes {
		alone.episodes[i].Agent, alone.episodes[i].Env = uint16(alone.episodes[i].Env%agents), alone.episodes[i].Env/agents
	}
	for _, dark := range []bool{false, true} {
		together := play(agents, dark)
		for b := range alone.blocks {
			for _, c := range slices.SortedFunc(maps.Keys(alone.blocks[b]), func(x, y trajectory.Column) int { return cmp.Compare(x, y) }) {
				if !bytes.Equal(alone.blocks[b][c], together.blocks[b][c]) {
					t.Fatalf("with a column that says who acts: %t: block %d: %v is\n%v together and\n%v alone", dark, b, c, together.blocks[b][c], alone.blocks[b][c])
				}
			}
		}
		n := min(len(alone.episodes), len(together.episodes))
		if n < 100 || !slices.Equal(alone.episodes[:n], together.episodes[:n]) {
			t.Errorf("with a column that says who acts: %t: %d episodes, which differ from those of agents alone: %v and %v", dark, n, together.episodes[:9], alone.episodes[:9])
		}
	}
}

// An agent that sits out and comes back has its lives apart, and what it gets in between counts with none.
func TestRollout_AnAgentThatComesBackBeginsAnew(t *testing.T) {
	p := newTable(false,
		row{acts: []byte{1, 1}, worth: []float32{1, 10}, reward: []float32{1, 1}},
		row{acts: []byte{1, 1}, worth: []float32{2, 10}, reward: []float32{2, 1}, terminated: []byte{1, 0}}, // dies, and is back at once
		row{acts: []byte{1, 1}, worth: []float32{3, 10}, reward: []float32{4, 1}, truncated: []byte{1, 0}, final: []float32{50, 0}},
		row{acts: []byte{0, 1}, worth: []float32{99, 10}, reward: []float32{1000, 1}}, // out for a row
		row{acts: []byte{1, 1}, worth: []float32{5, 10}, reward: []float32{8, 1}},
		row{acts: []byte{1, 1}, worth: []float32{6, 10}, reward: []float32{16, 1}, truncated: []byte{1, 1}, final: []float32{70, 80}},
	)
	var got []float64
	r := tableRig(t, p, 6, func(tr trajectory.Trajectory) {
		if got != nil {
			return
		}
		for i, a := range advantages(t, tr) {
			switch {
			case i%4 != 0:
			case tr.Bytes(trajectory.Valid)[i] == 0:
				got = append(got, none)
			default:
				got = append(got, math.Round(float64(a)*1e3)/1e3)
			}
		}
	})
	r.MustRun(func() bool { return len(r.episodes) >= 40 })
	delta := func(reward, next, value float64) float64 { return reward + 0.9*next - value }
	dies, last := delta(2, 0, 2), delta(16, 70, 6)
	want := []float64{delta(1, 2, 1) + 0.45*dies, dies, delta(4, 50, 3), none, delta(8, 6, 5) + 0.45*last, last}
	for i := range want {
		if len(got) != len(want) || math.Abs(got[i]-want[i]) > 2e-3 {
			t.Fatalf("advantages %v, want %v", got, want)
		}
	}
	lives := map[[2]int][]float32{}
	for _, e := range r.episodes {
		who := [2]int{int(e.Env), int(e.Agent)}
		lives[who] = append(lives[who], e.Return, float32(e.Length))
	}
	for env := range 2 {
		if first := lives[[2]int{env, 0}]; len(first) < 12 || !slices.Equal(first[:12], []float32{3, 2, 4, 1, 24, 2, 3, 2, 4, 1, 24, 2}) {
			t.Errorf("environment %d: returns and lengths %v of the one that comes back", env, first)
		}
		if other := lives[[2]int{env, 1}]; len(other) < 2 || !slices.Equal(other[:2], []float32{6, 6}) {
			t.Errorf("environment %d: returns and lengths %v of the other", env, other)
		}
	}
	// The environment's episode is over with the last of its agents' that run.
	if length := r.Host.Stats.Histogram("env/environment_length").Snapshot(); length.Count == 0 || length.Sum/float64(length.Count) != 6 {
		t.Errorf("%d episodes of environments with %v steps, want 6 each", length.Count, length.Sum)
	}
}

// An info at reset is one number of the episode that begins, of an agent or of an environment. It counts with that episode, wherever blocks
// end, and nobody looks at it in other rows.
func TestRollout_InfosAtResetCountWithTheEpisodeThatBegins(t *testing.T) {
	for _, each := range []int{1, 3} {
		for _, horizon := range []int{1, 5} {
			p := newSoloists(each, false)
			p.spec.Tensors = append(p.spec.Tensors, hostabi.Tensor{Role: hostabi.RoleResetInfo, DType: hostabi.F32, Path: "born", Flags: p.spec.Tensors[0].Flags & hostabi.TensorPerAgent})
			p.tells = true
			r := newRig(t, rigOptions{plugin: p, config: func(c *config) { c.Envs, c.Splits, c.Horizon = 6/each, 1, horizon }})
			r.MustRun(func() bool { return len(r.episodes) >= 200 })
			sum, count := 0.0, 0
			for i := range 6 { // each is played alone
				e, rows := &soloistsEnv{soloists: newSoloists(1, false), draws: []uint64{env.Seed(7, i)}}, 0
				born := e.born(0)
				for _, episode := range r.episodes {
					if int(episode.Env)*each+int(episode.Agent) != i {
						continue
					}
					for over := false; !over; rows++ {
						e.draws[0] = env.Seed(e.draws[0], (i+rows)%2)
						over = e.draws[0]%7 < 2
					}
					sum, count, born = sum+float64(born), count+1, e.born(0)
				}
			}
			got := r.Host.Stats.Histogram("env/born").Snapshot()
			if int(got.Count) != count || math.Abs(got.Sum-sum) > 1e-6*sum {
				t.Errorf("%d agents, blocks of %d: %d infos with the sum %g, want %d with %g", each, horizon, got.Count, got.Sum, count, sum)
			}
		}
	}
}

func TestRollout_AnInfoAtResetThatIsNoNumberIsNamed(t *testing.T) {
	p := newSoloists(3, false)
	p.spec.Tensors = append(p.spec.Tensors, hostabi.Tensor{Role: hostabi.RoleResetInfo, DType: hostabi.F32, Path: "born", Flags: hostabi.TensorPerAgent})
	p.tells = true
	r := newRig(t, rigOptions{plugin: p, config: func(c *config) { c.Envs, c.Splits, c.Horizon, c.MaxRestarts = 2, 1, 4, 0 }})
	r.judge = func(tr trajectory.Trajectory, q trajectory.ActRequest) {
		if q.T == 0 {
			tr.Row(trajectory.ResetInfo, 0).Float32()[4] = float32(math.Inf(1))
		}
	}
	if err := r.RunUntil(func() bool { return false }); err == nil || !strings.Contains(err.Error(), "env 1") || !strings.Contains(err.Error(), `reset_info "born" is +Inf`) {
		t.Errorf("an info that is no number: %v", err)
	}
}
