package pipeline

import (
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// A learner waits for another that has yet to learn from the same trajectory, though only a claim on it shows that: where
// components are processes it may be on its way. Once the claim has died with its process, no learner waits.
func TestRound_WaitsForTrajectoriesOnTheirWay(t *testing.T) {
	schema, err := trajectory.NewSchema(graphtest.Described{Obs: 4}.Spec(), trajectory.Shape{Steps: 4, Envs: 2, Policies: "main rival"})
	if err != nil {
		t.Fatal(err)
	}
	all := &running{arenas: arena.NewSet(), stats: stat.NewRegistry()}
	own, err := all.arenas.Add(arena.Config{Name: "rollout.trajectories", Blocks: 1, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := own.Loan()
	if err != nil {
		t.Fatal(err)
	}
	block, err := loan.Commit() // the claim belongs to the connection to the batchers
	if err != nil {
		t.Fatal(err)
	}
	a := &assembly{graph: &graph.Graph{}}
	for name, of := range map[string]*graph.Component{
		"rollout":       {Flow: component.Flow{Envs: 2}},
		"learner":       {Policy: "main", Manifest: component.Manifest{Slots: graphtest.Ports("on_dataset", component.PayloadDataset)}},
		"learner_rival": {Policy: "rival", Manifest: component.Manifest{Slots: graphtest.Ports("on_dataset", component.PayloadDataset)}},
	} {
		of.Name = name
		host := &component.Host{Name: name}
		host.Bind(component.Manifest{})
		if name == "rollout" {
			host.Own(own)
		} else {
			a.graph.Wires = append(a.graph.Wires, graph.Wire{From: "rollout", To: name, Payload: component.PayloadDataset})
		}
		a.members = append(a.members, member{&instance{host: host, loop: new(loops.Set).Join(name)}, of, 0, name})
	}
	all.state.Store(a)
	r := &round{running: all}
	ends := func(name string) bool { return r.ends(a.member(name, 0).instance) }

	place, _ := schema.PolicyPlace("main")
	if err := trajectory.Settle(own, block, place, trajectory.Trained); err != nil {
		t.Fatal(err)
	}
	if ends("learner") {
		t.Error("the round ends although rival has yet to learn from the block")
	}
	if r.over() || r.stalled() != nil {
		t.Error("the round ends although nobody has died")
	}
	all.stats.Counter("process/deaths/batcher_rival").Inc()
	if x := r.stalled(); x == nil || r.over() {
		t.Errorf("%v is left alone, while the block is claimed", x)
	}
	if err := own.Release(block); err != nil {
		t.Fatal(err)
	}
	if !r.over() || r.stalled() != nil {
		t.Error("the round goes on although the process that had the block has died")
	}
	if claims, others := own.Claims(block); claims != 0 || others {
		t.Errorf("%d claims are left, others' %v", claims, others)
	}
	if err := all.arenas.Close(); err != nil {
		t.Error(err)
	}
}
