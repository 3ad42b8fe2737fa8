//go:build !wasip1

package wasm

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// racers are three runners who move by turns, one each step. Action 1 ends the episode of its runner; all end at ten steps. Each
// observes how often it has acted and whose turn it is.
type racers struct {
	steps int
	acted [3]float32
	out   [3]bool
	last  [3]float32
}

func newRacers(*sdk.Config) (*racers, error) { return &racers{}, nil }

// next is who acts next: the first from the number of steps on who is not out.
func (r *racers) next() int {
	for k := range r.out {
		if who := (r.steps + k) % len(r.out); !r.out[who] {
			return who
		}
	}
	return 0
}

func (r *racers) look(obs []float32) {
	for k := range r.acted {
		obs[2*k], obs[2*k+1] = r.acted[k], float32(r.next())
	}
}

func (r *racers) Reset(_ *sdk.Rand, obs []float32) {
	*r = racers{}
	r.look(obs)
}

func (r *racers) Step(_ *sdk.Rand, action []int32, obs []float32) sdk.Result {
	who := r.next()
	r.acted[who]++
	r.last = [3]float32{}
	r.last[who] = float32(who + 1)
	r.out[who] = action[who] == 1
	r.steps++
	r.look(obs)
	return sdk.Result{Truncated: r.steps == 10}
}

func (r *racers) Reward(results []sdk.Result) {
	for k := range results {
		results[k].Reward, results[k].Terminated = r.last[k], r.out[k]
	}
}

func (r *racers) Active(acts []uint8) {
	for k := range acts {
		acts[k] = flag(k == r.next())
	}
}

func (r *racers) ActionMask(legal []uint8) {
	for k := range legal {
		legal[k] = flag(k%2 == 1)
	}
}

func (r *racers) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, uint8(r.steps))
	for k := range r.out {
		b = append(b, uint8(r.acted[k]), flag(r.out[k]))
	}
	return b, nil
}

func (r *racers) UnmarshalBinary(b []byte) error {
	r.steps = int(b[0])
	for k := range r.out {
		r.acted[k], r.out[k] = float32(b[1+2*k]), b[2+2*k] != 0
	}
	return nil
}

func racersSpec() sdk.Spec {
	return sdk.Spec{Name: "racers@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 10, 2), Agents: 3, Apart: true}
}

// agentRig is a rig of an environment with agents. In columns the rows of an environment's agents do not lie together.
type agentRig struct {
	*rig
	spec hostabi.EnvSpec
}

func newAgentRig(t *testing.T, envs int, columns bool) *agentRig {
	t.Helper()
	clear(linear)
	data, err := served.describe("")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hostabi.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	r := &agentRig{&rig{t: t, envs: envs, descs: spec.Tensors}, spec}
	if r.batch, _, err = served.create("", envs, hostabi.SameStep); err != nil {
		t.Fatal(err)
	}
	place := uint32(64)
	for _, d := range r.descs {
		size, elems, agents := uint32(d.DType.Bytes()), uint32(d.Elems(1<<20)), uint32(1)
		if d.Flags&hostabi.TensorPerAgent != 0 {
			agents = uint32(spec.Agents())
		}
		all := size * elems * agents * uint32(envs)
		b := hostabi.Binding{Ptr: place, StrideT: all, StrideEnv: size * elems * agents, StrideAgent: size * elems, StrideElem: size}
		if columns {
			b.StrideElem, b.StrideAgent, b.StrideEnv = size*agents*uint32(envs), size*uint32(envs), size
		}
		place += (all*rigTime + 63) &^ 63
		if d.Role == hostabi.RoleFinalObservation {
			b.StrideT = 0
		}
		r.binds = append(r.binds, b)
	}
	if status := r.batch.bind(r.binds); status != hostabi.StatusOK {
		t.Fatalf("bind: %v", status)
	}
	return r
}

// read returns the elements of all agents of an environment in the tensor of a role.
func read[T any](r *agentRig, role hostabi.Role, t, env int) []T {
	k := slices.IndexFunc(r.descs, func(d hostabi.Tensor) bool { return d.Role == role })
	agents := 1
	if r.descs[k].Flags&hostabi.TensorPerAgent != 0 {
		agents = r.spec.Agents()
	}
	var out []T
	for agent := range agents {
		for i := range int(r.descs[k].Elems(1 << 20)) {
			out = append(out, *agentAt[T](r, k, t, env, agent, i))
		}
	}
	return out
}

func agentAt[T any](r *agentRig, tensor, t, env, agent, elem int) *T {
	moved := *r.rig
	moved.binds = slices.Clone(r.binds)
	moved.binds[tensor].Ptr += uint32(agent) * r.binds[tensor].StrideAgent
	return at[T](&moved, tensor, t, env, elem)
}

// step has everybody take the actions; an agent that does not act may have any.
func (r *agentRig) step(t int, actions ...int32) {
	r.t.Helper()
	for i := range r.envs {
		for agent, action := range actions {
			*agentAt[int32](r, tensorAction, t, i, agent, 0) = action
		}
	}
	if status := r.batch.step(uint32(t), 0, r.envs); status != hostabi.StatusOK {
		r.t.Fatalf("step %d: %v", t, status)
	}
}

func want[T comparable](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestBatch_EndsAgentsApart(t *testing.T) {
	for _, columns := range []bool{false, true} {
		Serve(racersSpec(), newRacers)
		r := newAgentRig(t, 2, columns)
		r.reset(0, nil)
		want(t, "first to act", read[uint8](r, hostabi.RoleActive, 0, 1), 1, 0, 0)
		want(t, "masks", read[uint8](r, hostabi.RoleActionMask, 0, 1), 0, 1, 1, 1, 1, 1)

		r.step(0, 1, 99, -1)
		want(t, "rewards", read[float32](r, hostabi.RoleReward, 0, 1), 1, 0, 0)
		want(t, "terminated", read[uint8](r, hostabi.RoleTerminated, 0, 1), 1, 0, 0)
		want(t, "next to act", read[uint8](r, hostabi.RoleActive, 1, 1), 0, 1, 0)
		want(t, "last observation", read[float32](r, hostabi.RoleFinalObservation, 0, 1)[:2], 1, 1)

		r.step(1, 0, 0, 0)
		want(t, "flags of one that is out", read[uint8](r, hostabi.RoleTerminated, 1, 1), 0, 0, 0)
		saved, _, err := r.batch.save(0)
		if err != nil {
			t.Fatal(err)
		}
		if status, err := r.batch.load(1, slices.Clone(saved)); status != hostabi.StatusOK || err != nil {
			t.Fatal(status, err)
		}
		r.step(2, 0, 99, 1)
		r.step(3, 0, 1, 0)
		for i := range r.envs {
			want(t, "last terminated", read[uint8](r, hostabi.RoleTerminated, 3, i), 0, 1, 0)
			want(t, "last observations", read[float32](r, hostabi.RoleFinalObservation, 0, i), 1, 1, 2, 0, 1, 1)
			want(t, "the new episode", read[float32](r, hostabi.RoleObservation, 4, i), 0, 0, 0, 0, 0, 0)
			want(t, "who acts in it", read[uint8](r, hostabi.RoleActive, 4, i), 1, 0, 0)
		}
		if got := testing.AllocsPerRun(10, func() { r.batch.step(4, 0, r.envs) }); got != 0 {
			t.Errorf("step allocates %v times", got)
		}
	}
}

// Where agents end together, the flags of Step count, and the action of an acting agent is checked.
func TestBatch_EndsAgentsTogether(t *testing.T) {
	spec := racersSpec()
	spec.Apart = false
	Serve(spec, newRacers)
	r := newAgentRig(t, 3, true)
	r.reset(0, nil)
	for s := range 10 {
		r.step(s, 0, 0, 0)
		want(t, "truncated", read[uint8](r, hostabi.RoleTruncated, s, 2), flag(s == 9))
	}
	want(t, "last observations", read[float32](r, hostabi.RoleFinalObservation, 0, 2), 4, 1, 3, 1, 3, 1)
	*agentAt[int32](r, tensorAction, 10, 2, 0, 0) = 2
	if status := r.batch.step(10, 0, 3); status != hostabi.StatusAction || r.batch.current() != 2 {
		t.Errorf("%v of environment %d, want a bad action of 2", status, r.batch.current())
	}
}

// team is a collector of two agents with a common result.
type team struct{ collector }

func newTeam(*sdk.Config) (*team, error) { return &team{}, nil }

func (e *team) look(obs *sdk.Observed) {
	for k := range 2 {
		obs.Uint8[0][k], obs.Float32[1][2*k] = uint8(e.steps)+uint8(100*k), e.luck
		obs.Float32[1][2*k+1] = float32(e.steps) + float32(k)/2
	}
}

func (e *team) Reset(rng *sdk.Rand, obs *sdk.Observed) {
	e.steps, e.luck = 0, rng.Uniform(0, 1)
	e.look(obs)
}

func (e *team) Step(_ *sdk.Rand, action []int32, obs *sdk.Observed) sdk.Result {
	e.steps++
	e.look(obs)
	return sdk.Result{Reward: float32(action[0] + 2*action[1]), Truncated: e.steps == 2}
}

func TestBatch_GivesAgentsSeveralObservations(t *testing.T) {
	for _, columns := range []bool{false, true} {
		ServeDict(sdk.Spec{Name: "team@1", Action: sdk.Discrete(2), Agents: 2, Figures: []sdk.Figure{{Name: "score"}}, Observations: []sdk.Space{
			sdk.Box(0, 255, 1).As("map", sdk.Uint8), sdk.Box(0, 3, 2).As("luck", sdk.Float32),
		}}, newTeam)
		r := newAgentRig(t, 2, columns)
		r.reset(0, nil)
		r.step(0, 0, 1)
		r.step(1, 1, 1)
		want(t, "rewards of both", append(read[float32](r, hostabi.RoleReward, 0, 1), read[float32](r, hostabi.RoleReward, 1, 1)...), 2, 2, 3, 3)
		want(t, "figure of the environment", read[float32](r, hostabi.RoleInfo, 1, 1), 2)
		want(t, "last maps", read[uint8](r, hostabi.RoleFinalObservation, 0, 1), 2, 102)
		want(t, "maps of the new episode", read[uint8](r, hostabi.RoleObservation, 2, 1), 0, 100)
	}
}

func TestServe_RefusesWhatAgentsCannotHave(t *testing.T) {
	for _, change := range []func(*sdk.Spec){
		func(s *sdk.Spec) { s.Agents = -1 }, func(s *sdk.Spec) { s.Agents = hostabi.MaxAgents + 1 }, func(s *sdk.Spec) { s.Discount = true },
	} {
		spec := racersSpec()
		change(&spec)
		Serve(spec, newRacers)
		if _, err := served.describe(""); err == nil {
			t.Errorf("%+v is described", spec)
		}
	}
	Serve(racersSpec(), newRacers)
	for _, mode := range []hostabi.Autoreset{hostabi.NextStep, hostabi.Disabled} {
		if _, status, err := served.create("", 2, mode); status != hostabi.StatusUnsupported || err == nil {
			t.Errorf("%v is taken: %v, %v", mode, status, err)
		}
	}
}

// relay is a vectorised environment whose two agents act by turns.
type relay struct{ steps []int }

func newRelay(_ *sdk.Config, n int) (*relay, error) { return &relay{make([]int, n)}, nil }

func (r *relay) Reset(i int, _ *sdk.Rand, obs []float32) { r.steps[i], obs[0], obs[1] = 0, 0, 0 }

func (r *relay) Step(first int, rngs []sdk.Rand, rows sdk.Rows[int32, float32]) {
	for i := range rngs {
		r.steps[first+i]++
		for k := range 2 {
			rows.Obs[2*i+k], rows.Rewards[2*i+k] = float32(r.steps[first+i]), float32(10*(first+i)+k)
		}
		rows.Terminated[i], rows.Truncated[i] = 0, flag(r.steps[first+i] == 3)
	}
}

func (r *relay) Active(i int, acts []uint8) { acts[r.steps[i]%2] = 0 }

func TestServeBatch_HasAgents(t *testing.T) {
	ServeBatch(sdk.Spec{Name: "relay@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 3), Agents: 2}, newRelay)
	r := newAgentRig(t, 3, true)
	r.reset(0, nil)
	for s := range 3 {
		r.step(s, 0, 0)
		want(t, "rewards", read[float32](r, hostabi.RoleReward, s, 2), 20, 21)
	}
	want(t, "active", read[uint8](r, hostabi.RoleActive, 1, 2), 1, 0)
	want(t, "truncated", read[uint8](r, hostabi.RoleTruncated, 2, 2), 1)
	want(t, "last observations", read[float32](r, hostabi.RoleFinalObservation, 0, 2), 3, 3)
	want(t, "the new episode", read[uint8](r, hostabi.RoleActive, 3, 2), 0, 1)
}
