package plugins_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"

	"github.com/rlhost/rlhost/examples/plugins/cartpole-go/cartpole"
	"github.com/rlhost/rlhost/sdk"
)

// variant is one way of running a guest; the zero values are run_guest.mjs's defaults.
type variant struct {
	envs, steps, maxSteps, rng int
	mode, layout               string
}

func (v variant) String() string { return fmt.Sprintf("%+v", v.arguments()) }

func (v variant) arguments() []string {
	args := []string{fmt.Sprintf("envs=%d", v.envs), fmt.Sprintf("steps=%d", v.steps), "mode=" + v.mode}
	if v.layout != "" {
		args = append(args, "layout="+v.layout)
	}
	if v.rng != 0 {
		args = append(args, fmt.Sprintf("range=%d", v.rng))
	}
	if v.maxSteps != 0 {
		args = append(args, fmt.Sprintf("config=max_steps=%d", v.maxSteps))
	}
	return args
}

func variants() []variant {
	return []variant{
		{envs: 7, steps: 300, mode: "same_step"},
		{envs: 7, steps: 300, mode: "same_step", layout: "columns"},
		{envs: 64, steps: 120, mode: "same_step", layout: "columns"},
		{envs: 13, steps: 300, mode: "same_step", rng: 3},
		{envs: 43, steps: 200, mode: "same_step"}, // several groups and a rest
		{envs: 7, steps: 300, mode: "next_step"},
		{envs: 21, steps: 200, mode: "next_step", layout: "columns", rng: 4, maxSteps: 20},
		{envs: 9, steps: 200, mode: "disabled"},
		{envs: 25, steps: 200, mode: "disabled", layout: "columns", maxSteps: 12},
	}
}

// player is the plainest correct way to run CartPole under an autoreset mode: one environment at a time, no
// layouts, no batches. What it hashes is written down in golden/run_guest.mjs.
type player struct {
	variant
	carts   *cartpole.Carts
	rngs    []sdk.Rand
	waiting []bool
	marked  []bool // ended since the host's last reset, in mode disabled
	obs     [][4]float32
	final   [][4]float32
	rewards []float32
	ends    [][2]uint8 // terminated, truncated
	hash    hash.Hash
	lcg     uint64
}

// referenceHash returns what run_guest.mjs must print for a CartPole guest.
func referenceHash(v variant) string {
	maxSteps := uint32(cartpole.DefaultMaxSteps)
	if v.maxSteps != 0 {
		maxSteps = uint32(v.maxSteps)
	}
	p := &player{
		variant: v, carts: cartpole.NewCarts(v.envs, maxSteps), rngs: make([]sdk.Rand, v.envs),
		waiting: make([]bool, v.envs), marked: make([]bool, v.envs), obs: make([][4]float32, v.envs),
		final: make([][4]float32, v.envs), rewards: make([]float32, v.envs), ends: make([][2]uint8, v.envs),
		hash: sha256.New(), lcg: 1,
	}
	for i := range p.rngs {
		p.rngs[i] = sdk.NewRand(uint64(100 + i))
		p.begin(i)
	}
	p.absorbObs(p.obs)
	for t := range v.steps {
		p.step(t)
	}
	p.absorbObs(p.final)
	p.absorbSaved()
	return fmt.Sprintf("%x", p.hash.Sum(nil))[:16]
}

func (p *player) begin(i int) {
	p.waiting[i] = false
	p.carts.Reset(i, &p.rngs[i], p.obs[i][:])
}

func (p *player) step(t int) {
	for i := range p.rngs {
		p.lcg = p.lcg*6364136223846793005 + 1442695040888963407
		p.stepOne(i, int32(p.lcg>>33%2))
	}
	written := append([][4]float32(nil), p.obs...)
	if p.mode == "disabled" {
		p.hostResets(t)
		written = p.obs
	}
	p.absorbObs(written)
	p.absorb(p.rewards)
	for k := range 2 {
		for i := range p.ends {
			p.absorb(p.ends[i][k])
		}
	}
}

func (p *player) stepOne(i int, action int32) {
	if p.waiting[i] {
		p.rewards[i], p.ends[i] = 0, [2]uint8{}
		if p.mode == "next_step" {
			p.begin(i)
		}
		return
	}
	rows := sdk.Rows[int32, float32]{
		Actions: []int32{action}, Obs: p.obs[i][:], Rewards: p.rewards[i : i+1],
		Terminated: make([]uint8, 1), Truncated: make([]uint8, 1),
	}
	p.carts.Step(i, nil, rows)
	p.ends[i] = [2]uint8{rows.Terminated[0], rows.Truncated[0] &^ rows.Terminated[0]}
	if p.ends[i] == [2]uint8{} {
		return
	}
	if p.mode != "same_step" {
		p.waiting[i] = true
		return
	}
	p.final[i] = p.obs[i]
	p.begin(i)
}

// hostResets does the same as the script in mode disabled: it resets ended environments every third step.
func (p *player) hostResets(t int) {
	for i, e := range p.ends {
		p.marked[i] = p.marked[i] || e != [2]uint8{}
	}
	if t%3 != 2 {
		return
	}
	for i, marked := range p.marked {
		if marked {
			p.begin(i)
		}
		p.marked[i] = false
	}
}

func (p *player) absorb(value any) { _ = binary.Write(p.hash, binary.LittleEndian, value) }

func (p *player) absorbObs(rows [][4]float32) { p.absorb(rows) }

func (p *player) absorbSaved() {
	for i := range p.rngs {
		data, _ := p.carts.AppendEnv(nil, i)
		flags := uint32(0)
		if p.waiting[i] {
			flags = 1
		}
		p.absorb([2]uint32{0, uint32(len(data)) + 12}) // state version, bytes that follow
		p.absorb(data)
		p.absorb(flags)
		p.absorb(p.rngs[i].State())
	}
}

// nativeTrace returns the trace that the native C program prints for CartPole.
func nativeTrace(envs, steps int, seed uint64) string {
	b := cartpole.NewBatch(envs, cartpole.DefaultMaxSteps)
	seeds := make([]uint64, envs)
	for i := range seeds {
		seeds[i] = seed + uint64(i)
	}
	obs, final, rewards := make([]float32, 4*envs), make([]float32, 4*envs), make([]float32, envs)
	actions, terminated, truncated := make([]int32, envs), make([]uint8, envs), make([]uint8, envs)
	b.Reset(seeds, obs)
	rng, sum := sdk.NewRand(seed), fnv.New64a()
	for range steps {
		for i := range actions {
			actions[i] = int32(rng.Below(2))
		}
		b.Step(actions, obs, rewards, terminated, truncated, final)
		for _, v := range [][]float32{obs, rewards} {
			for _, x := range v {
				_ = binary.Write(sum, binary.LittleEndian, math.Float32bits(x))
			}
		}
		sum.Write(terminated)
		sum.Write(truncated)
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}
