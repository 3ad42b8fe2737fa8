package learner

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/runs"
)

const frozen = "../../pipeline/runs/testdata/frozen"

// A learner that continues from a checkpoint of an older version has its parameters, its optimiser's moments and its
// normaliser, bit for bit.
func TestFrozen_LearnersHoldWhatWasSaved(t *testing.T) {
	files, err := filepath.Glob(frozen + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d checkpoints, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { restoreFrozen(t, file) })
	}
}

func restoreFrozen(t *testing.T, file string) {
	type holds struct {
		Params        string `json:"params"`
		AdamM         string `json:"adam_m"`
		AdamV         string `json:"adam_v"`
		AdamSteps     uint64 `json:"adam_steps"`
		Normalizer    string `json:"normalizer"`
		EnvSteps      uint64 `json:"env_steps"`
		PolicyVersion uint64 `json:"policy_version"`
	}
	var want holds
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	run, err := runs.Open("", filepath.Join(frozen, "runs", strings.TrimSuffix(filepath.Base(file), ".json"), "0001"))
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := run.Load(runs.Latest)
	if err != nil {
		t.Fatal(err)
	}
	state := checkpoint.Components["learner"]
	network, _, err := Weights(state)
	if err != nil {
		t.Fatal(err)
	}
	c := newRig(t, rigOptions{network: network, restore: state}).c
	s, err := c.backend.State()
	if err != nil {
		t.Fatal(err)
	}
	got := holds{Params: runs.ParamsHash(s.Params), AdamM: runs.ParamsHash(s.AdamM), AdamV: runs.ParamsHash(s.AdamV),
		AdamSteps: s.AdamSteps, Normalizer: hashNormalizer(c.normalizer), EnvSteps: c.envSteps, PolicyVersion: c.version}
	if got != want {
		t.Errorf("restored\n%+v, want\n%+v", got, want)
	}
}

// hashNormalizer is the SHA-256 of count, means and squared deviations as little-endian float64; empty without one.
func hashNormalizer(n *policy.Normalizer) string {
	if n == nil {
		return ""
	}
	var b []byte
	for _, x := range append(append([]float64{n.Count}, n.Mean...), n.M2...) {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
