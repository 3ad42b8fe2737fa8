package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/internal/testkit"
)

// The repository's version of the network is the policy table's, so that the host may act with it.
func TestNetwork_ActsAsTheHostDoes(t *testing.T) {
	for _, share := range []bool{false, true} {
		n := policy.MLP{Obs: 4, Actions: 3, Hidden: []int{16, 8}, Activation: policy.Tanh, ShareTrunk: share,
			HiddenGain: 1, Heads: policy.Heads{PolicyGain: 1}}.Network()
		params := policy.Init(&n, 5)
		var values [2][]float32
		for i, b := range []policy.Backend{&gorgonia.Backend{Builder: network{}, Loss: loss}, cpu.New()} {
			values[i] = actOn(t, b, n, params)
		}
		for i := range values[0] {
			if d := values[0][i] - values[1][i]; d > 1e-5 || d < -1e-5 {
				t.Errorf("share_trunk = %v, environment %d: value %v, the host has %v", share, i, values[0][i], values[1][i])
			}
		}
	}
}

// actOn returns the values of eight observations.
func actOn(t *testing.T, b policy.Backend, n policy.Network, params []float32) []float32 {
	t.Helper()
	actor, err := policy.NewActor(b, &n, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer actor.Close()
	if err := actor.Load(policy.Weights{Params: params}); err != nil {
		t.Fatal(err)
	}
	schema, err := trajectory.NewSchema(policytest.Spec(n.Obs(), n.Actions(), false), trajectory.Shape{Steps: 1, Envs: 8})
	if err != nil {
		t.Fatal(err)
	}
	tr := trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}
	for i := range tr.Float32(trajectory.Obs) {
		tr.Float32(trajectory.Obs)[i] = float32(i%7) / 7
	}
	value := tr.Row(trajectory.Value, 0).Float32()
	err = actor.Act([]policy.Request{{Obs: tr.Rows(nil, trajectory.Obs, 0), Action: tr.Rows(nil, trajectory.Action, 0),
		LogProb: tr.Float32(trajectory.LogProb), Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(value)
}

// The README's training, shortened: the plugin learns, the host acts.
func TestReadme_TrainsCartPole(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs and trains")
	}
	dir := t.TempDir()
	for out, pkg := range map[string]string{"glearner": ".", "rlhost": "../../../cmd/rlhost"} {
		testkit.Build(t, pkg, filepath.Join(dir, out))
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("(?s)```toml\n(.*?)```").FindSubmatch(page)[1]
	if err := os.WriteFile(filepath.Join(dir, "pipeline.toml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	train := exec.Command("./rlhost", "train", "--json", "--set", "run.stop.return=100")
	train.Dir = dir
	var stderr strings.Builder
	train.Stderr = &stderr
	out, err := train.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var end struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || end.Reason != "return" {
		t.Errorf("ended with %q, %v:\n%s\n%s", end.Reason, err, out, stderr.String())
	}
}
