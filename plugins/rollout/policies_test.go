package rollout

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// policiesRig is a rollout of tables whose policies answer each request in turn, the last of them first, as versions 10, 11 and
// so on. each gets its blocks.
func policiesRig(t *testing.T, p env.Plugin, config func(*config), each func(tr trajectory.Trajectory)) *rig {
	t.Helper()
	r := newRig(t, rigOptions{plugin: p, config: config})
	r.silent = true
	r.From("obs_ready", func(m *hostabi.Message) {
		for k := len(r.c.policies.names) - 1; k >= 0; k-- {
			q := trajectory.ActRequestOf(m)
			q.Policy = k
			tr, err := trajectory.Borrowed(r.Host.Arenas, q.Block)
			if err != nil {
				t.Error(err)
			}
			for i, place := range tr.Policies(q.T) {
				if int(place) != k || q.ValueOnly {
					continue
				}
				tr.Row(trajectory.Action, q.T).Int32()[i] = int32(k)
				if r.c.policies.drawn>>k&1 != 0 && tr.Acts(q.T)[i] != 0 && tr.PlayedVersions(q.T)[i] == trajectory.AnyVersion {
					tr.PlayedVersions(q.T)[i] = 100 + q.Step // another one is drawn for each step
				}
			}
			answer := q.Message()
			answer.PolicyVersion = uint64(10 + k)
			if err := r.answers.Emit(answer); err != nil {
				t.Error(err)
			}
		}
	})
	r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) { each(tr) })
	return r
}

// twoGames configures a rollout of tables.
func twoGames(envs, splits int, policies map[string]string, opponents map[string]float64) func(*config) {
	return func(c *config) {
		c.Envs, c.Splits, c.Horizon, c.Policies, c.Opponents = envs, splits, 6, policies, opponents
	}
}

func TestPolicies_EachHasTheRowsOfItsAgents(t *testing.T) {
	blocks := 0
	r := policiesRig(t, game(true), twoGames(2, 1, map[string]string{"players/0": "west", "players/1": "east"}, nil), func(tr trajectory.Trajectory) {
		blocks++
		all := tr.Bytes(trajectory.Valid)
		east, west := tr.Bytes(trajectory.Valid.At(1)), tr.Bytes(trajectory.Valid.At(2))
		for i := range all {
			if want := [2]byte{1, 0}[i%2]; tr.Bytes(trajectory.Policy)[i] != want {
				t.Fatalf("row %d is policy %d's, want %d", i, tr.Bytes(trajectory.Policy)[i], want)
			}
			if own := [2][]byte{west, east}[i%2]; own[i] != all[i] || east[i]+west[i] != all[i] {
				t.Errorf("row %d: valid %d, for east %d, for west %d", i, all[i], east[i], west[i])
			}
		}
		if m := tr.Meta(); m.MinVersion != 10 || m.MaxVersion != 11 {
			t.Errorf("versions %d to %d acted, want 10 to 11", m.MinVersion, m.MaxVersion)
		}
	})
	r.MustRun(func() bool { return blocks >= 4 })
	for _, e := range r.episodes {
		if want := trajectory.PolicyID([]string{"west", "east"}[e.Agent]); e.Policy != want {
			t.Errorf("episode of agent %d is told of policy %x, want %x", e.Agent, e.Policy, want)
		}
	}
	if len(r.episodes) == 0 {
		t.Error("no episode has been told")
	}
}

func TestPolicies_OpponentsPlayTheirShareAndOneAgentEach(t *testing.T) {
	const until = 3000
	games, opponents := 0, map[string]int{}
	r := policiesRig(t, game(true), twoGames(4, 1, map[string]string{"players": "main"}, map[string]float64{"past": 0.3, "rival": 0.1}),
		func(tr trajectory.Trajectory) {
			names := strings.Fields(tr.Schema.Shape.Policies)
			by := tr.Bytes(trajectory.Policy)
			for _, first := range []int{0, 4} { // rows where a game begins
				for env := range 4 {
					at := first*8 + env*2
					games++
					for agent := range 2 {
						if name := names[by[at+agent]]; name != "main" {
							opponents[fmt.Sprint(name, agent)]++
						}
					}
					if names[by[at]] != "main" && names[by[at+1]] != "main" {
						t.Fatal("an environment has two opponents")
					}
					end := map[int]int{0: 4, 4: 6}[first]
					for row := first; row < end; row++ {
						if !bytes.Equal(by[row*8+env*2:][:2], by[at:][:2]) {
							t.Fatal("a policy changes within a game")
						}
					}
				}
			}
		})
	r.MustRun(func() bool { return games >= until })
	for who, share := range map[string]float64{"past0": 0.15, "past1": 0.15, "rival0": 0.05, "rival1": 0.05} {
		n := float64(games)
		if got, sigma := float64(opponents[who]), math.Sqrt(n*share*(1-share)); math.Abs(got-n*share) > 4*sigma {
			t.Errorf("%s in %v of %v games, want %v ± %v", who, got, n, n*share, sigma)
		}
	}
}

// An opponent takes the place of an agent of its group, each equally often.
func TestPolicies_OpponentsPlayAgentsOfTheirGroup(t *testing.T) {
	spec := hostabi.EnvSpec{Name: "tag@1", Groups: []hostabi.Group{{Name: "hunters", Agents: 3}, {Name: "prey", Agents: 1}}}
	flow := component.Flow{Policies: map[string]string{"hunters": "main", "prey": "rabbit"}, Opponents: map[string]float64{"fox": 0.3, "hare": 0.2}}
	const seed, n = 11, 20_000
	p, err := newPolicies(&flow, &spec, map[string]component.PolicyTable{"hare": {Group: 1}, "fox": {Group: 0}}, seed)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for step := range uint64(n) {
		for agent := range 4 {
			count[fmt.Sprint(p.names[p.draw(2, agent, step)], agent)]++
		}
	}
	for who, share := range map[string]float64{"fox0": 0.1, "fox1": 0.1, "fox2": 0.1, "fox3": 0, "hare3": 0.2, "hare0": 0, "rabbit3": 0.8, "main0": 0.9, "main3": 0} {
		want, sigma := n*share, math.Sqrt(n*share*(1-share))
		if got := float64(count[who]); math.Abs(got-want) > 4*sigma {
			t.Errorf("%s in %v of %d games, want %v ± %v (seed %d)", who, got, n, want, sigma, seed)
		}
	}
	for name, group := range map[string]uint8{"main": 0, "rabbit": 1, "fox": 0, "hare": 1} {
		if got := p.groups[p.place(name)]; got != group {
			t.Errorf("%s plays group %d, want %d", name, got, group)
		}
	}
}

// Who plays depends on seed, environment and env step, not on how environments are split.
func TestPolicies_SplitsChangeNoOpponent(t *testing.T) {
	var want [][]byte
	for _, splits := range []int{1, 2, 4} {
		rows, blocks := make([][]byte, 4), 0
		r := policiesRig(t, game(true), twoGames(4, splits, map[string]string{"*/*": "main"}, map[string]float64{"past": 0.5}), func(tr trajectory.Trajectory) {
			blocks++
			each := tr.Schema.Rows() / tr.Schema.Shape.Envs
			by := tr.Bytes(trajectory.Policy)
			for t := range tr.Schema.Shape.Steps {
				for env := range tr.Schema.Shape.Envs {
					global := int(tr.Meta().FirstEnv) + env
					rows[global] = append(rows[global], by[t*tr.Schema.Rows()+env*each:][:each]...)
				}
			}
		})
		r.MustRun(func() bool { return blocks >= 20*splits })
		for env := range rows {
			rows[env] = rows[env][:20*6*2]
		}
		if want == nil {
			want = rows
		}
		for env := range rows {
			if !bytes.Equal(rows[env], want[env]) {
				t.Errorf("%d splits: environment %d is played by others", splits, env)
			}
		}
	}
}

// The version drawn when an opponent first acts in an episode plays to the end, over seams too, and the episode names it.
func TestPolicies_AVersionPlaysAWholeEpisode(t *testing.T) {
	config := func(c *config) {
		twoGames(2, 1, map[string]string{"*/*": "main"}, map[string]float64{"past": 0.5})(c)
		c.Horizon = 5 // games continue over seams
	}
	const games = 400
	ended, seen, step, told := 0, 0, 0, map[uint64]int{} // by version
	var version [4]uint64                                // that plays each agent's episode; 0 before it has acted
	var r *rig
	r = policiesRig(t, game(true), config, func(tr trajectory.Trajectory) {
		seen = len(r.episodes)
		past, _ := tr.Schema.PolicyPlace("past")
		for row := range tr.Schema.Shape.Steps {
			acts, policies, played := tr.Acts(row), tr.Policies(row), tr.PlayedVersions(row)
			over := step%6 == 3 || step%6 == 5
			step++
			for i := range played {
				if int(policies[i]) == past && acts[i] != 0 {
					if version[i] != 0 && played[i] != version[i] {
						t.Fatalf("agent %d is played by version %d, which began as %d", i, played[i], version[i])
					}
					version[i] = played[i]
				}
				if over && version[i] != 0 {
					told[version[i]]++
					ended, version[i] = ended+1, 0
				}
			}
		}
	})
	r.MustRun(func() bool { return ended >= games })
	for i, e := range r.episodes[:seen] {
		if e.Policy == trajectory.PolicyID("past") {
			told[r.versions[i]]--
		}
	}
	if len(told) < games/10 {
		t.Errorf("%d versions have played %d games", len(told), ended)
	}
	for version, n := range told {
		if n != 0 {
			t.Errorf("%d more episodes than are told were played by version %d", n, version)
		}
	}
}

func TestPolicies_ASnapshotKeepsThePlayers(t *testing.T) {
	const horizon = 5 // games continue over seams
	config := func(c *config) {
		twoGames(2, 1, map[string]string{"*/*": "main"}, map[string]float64{"past": 0.5})(c)
		c.Horizon = horizon
	}
	var all []byte
	until := func(r *rig, rows int) { r.MustRun(func() bool { return len(all) >= rows }) }
	told := func(tr trajectory.Trajectory) {
		for i, place := range tr.Bytes(trajectory.Policy)[:horizon*4] {
			all = append(all, place<<7|byte(tr.Uint64(trajectory.PlayedVersion)[i]&0x7f)) // who plays, and as which version
		}
	}
	until(policiesRig(t, game(true), config, told), 12*horizon*4)
	want := all[:12*horizon*4]
	all = nil
	r := policiesRig(t, game(true), config, told)
	until(r, 3*horizon*4)
	state, err := r.c.Snapshot()
	for err != nil { // a row of the next block has been stepped
		state, err = r.c.Snapshot()
		r.MustRun(func() bool { return true })
	}
	rest := 12*horizon*4 - len(all)
	made := len(all)
	all = nil
	again := policiesRig(t, game(true), config, told)
	if err := again.c.Restore(state); err != nil {
		t.Fatal(err)
	}
	until(again, rest)
	if !bytes.Equal(all[:rest], want[made:]) {
		t.Errorf("others play after a snapshot: %v, want %v", all[:rest], want[made:])
	}
}

func TestPolicies_AnAnswerCountsOnce(t *testing.T) {
	r := newRig(t, rigOptions{plugin: game(true), config: twoGames(2, 1, map[string]string{"players/0": "a", "players/1": "b"}, nil)})
	r.silent = true
	r.MustRun(func() bool { return len(r.asked) == 1 })
	r.answer(r.asked[0]) // of policy 0
	r.answer(r.asked[0])
	err := r.Settle()
	if err == nil || !strings.Contains(err.Error(), "which were not asked for") {
		t.Errorf("a second answer of one policy: %v", err)
	}
}

func TestPolicies_WrongOnesAreNamed(t *testing.T) {
	for want, edit := range map[string]func(*config){
		"`opponents.past` is 2, want a share":       func(c *config) { c.Opponents["past"] = 2 },
		"`opponents` have 1.2 of the episodes":      func(c *config) { c.Opponents["past"], c.Opponents["b"] = 0.6, 0.6 },
		"`opponents` play against nobody":           func(c *config) { c.Policies = nil },
		"`policies` name \"a b\", which is no name": func(c *config) { c.Policies["players/0"] = "a b" },
		"`opponents.past` is NaN, want a share":     func(c *config) { c.Opponents["past"] = math.NaN() },
		"`opponents.past` is -0.5, want a share":    func(c *config) { c.Opponents["past"] = -0.5 },
	} {
		c := defaults()
		c.Env, c.Policies, c.Opponents = "x", map[string]string{"*/*": "main"}, map[string]float64{"past": 0.5}
		edit(&c)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("validate = %v, want %q", err, want)
		}
	}
	flow := component.Flow{Policies: map[string]string{"players/7": "main"}}
	if _, err := newPolicies(&flow, &game(true).spec, nil, 1); err == nil || !strings.Contains(err.Error(), "matches no agent") {
		t.Errorf("a pattern that matches no agent: %v", err)
	}
}
