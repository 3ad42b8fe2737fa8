package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// networks are some of each part that a network can have.
func networks() map[string]policy.MLP {
	return map[string]policy.MLP{
		"fast":       {Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: "tanh"},
		"normalised": {Obs: 6, Actions: 3, Hidden: []int{32}, Activation: "relu", NormalizeObs: true},
		"shared":     {Obs: 3, Actions: 5, Hidden: []int{16, 48}, Activation: "elu", ShareTrunk: true, NormalizeObs: true},
	}
}

// sample makes a policy with random weights and what the host computes of random observations.
func sample(t *testing.T, m policy.MLP, masked bool, rows int) (*Policy, *Samples) {
	t.Helper()
	m.PolicyGain = 1 // so that actions differ
	network := m.Network()
	r := rand.New(rand.NewPCG(3, 4))
	p := &Policy{Network: network, Masked: masked, About: map[string]string{"run": "cartpole/0007"}}
	p.Weights.Params = policy.Init(&network, 5)
	if m.NormalizeObs {
		for range m.Obs {
			p.Weights.ObsMean = append(p.Weights.ObsMean, r.Float32()*4-2)
			p.Weights.ObsScale = append(p.Weights.ObsScale, 1/(0.1+r.Float32()))
		}
	}
	s := &Samples{Rows: rows, Action: make([]int32, rows), LogProb: make([]float32, rows), Value: make([]float32, rows)}
	for range rows * m.Obs {
		s.Obs = append(s.Obs, float32(r.NormFloat64())*3)
	}
	var memory []byte
	for _, x := range s.Obs {
		memory = binary.LittleEndian.AppendUint32(memory, math.Float32bits(x))
	}
	action := trajectory.Matrix{DType: hostabi.I32, Data: make([]byte, 4*rows), Rows: rows, Elems: 1, StrideRow: 4, StrideElem: 4}
	q := policy.Request{Action: []trajectory.Matrix{action}, LogProb: s.LogProb, Value: s.Value, Greedy: true, Obs: []trajectory.Matrix{{
		DType: hostabi.F32, Data: memory, Rows: rows, Elems: m.Obs, StrideRow: 4 * m.Obs, StrideElem: 4}}}
	if masked {
		for i := range rows * m.Actions {
			s.Mask = append(s.Mask, byte(r.IntN(2)))
			if i%m.Actions == m.Actions-1 {
				s.Mask[i-r.IntN(m.Actions)] = 1
			}
		}
		q.Mask = []trajectory.Matrix{{DType: hostabi.U8, Data: s.Mask, Rows: rows, Elems: m.Actions, StrideRow: m.Actions, StrideElem: 1}}
	}
	actor, err := policy.NewActor(cpu.New(), &network, rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(actor.Load(p.Weights), actor.Act([]policy.Request{q}), actor.Close()); err != nil {
		t.Fatal(err)
	}
	copy(s.Action, action.Int32())
	return p, s
}

func TestCompare_EveryFormatComputesWhatTheHostDoes(t *testing.T) {
	t.Parallel()
	for name, m := range networks() {
		for _, masked := range []bool{false, true} {
			p, s := sample(t, m, masked, 10_000)
			for _, f := range Formats() {
				file, err := Encode(f, p)
				if err != nil {
					t.Fatal(err)
				}
				largest, err := Compare(f, file, s)
				t.Logf("%s, %s, masks %t: %d bytes, largest difference %.1e", f, name, masked, len(file), largest)
				if err != nil {
					t.Errorf("%s, %s: %v", f, name, err)
				}
				again, err := Encode(f, p)
				if err != nil || !bytes.Equal(file, again) {
					t.Errorf("%s, %s: the same policy gives another file (%v)", f, name, err)
				}
			}
		}
	}
}

// TestCompare_FindsWhatDiffers changes each weight's sign in turn, and each byte of a file.
func TestCompare_FindsWhatDiffers(t *testing.T) {
	t.Parallel()
	p, s := sample(t, policy.MLP{Obs: 2, Actions: 2, Hidden: []int{3}, Activation: "tanh", NormalizeObs: true}, false, 200)
	for _, f := range Formats() {
		for i, w := range p.Weights.Params {
			if w == 0 {
				continue
			}
			p.Weights.Params[i] = -w
			file, err := Encode(f, p)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Compare(f, file, s); !errors.Is(err, ErrDiffers) {
				t.Errorf("%s: parameter %d has another sign: %v", f, i, err)
			}
			p.Weights.Params[i] = w
		}
		file, err := Encode(f, p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range file {
			damaged := bytes.Clone(file)
			damaged[i] ^= 0x55
			_, _ = Compare(f, damaged, s) // whatever it says, it returns
		}
	}
}

// TestPeers_NumPyAndONNXRuntimeComputeWhatTheHostDoes plays the files to the programs that they are for. RLHOST_PEERS
// names a Python that has NumPy and onnxruntime.
func TestPeers_NumPyAndONNXRuntimeComputeWhatTheHostDoes(t *testing.T) {
	t.Parallel()
	python := os.Getenv("RLHOST_PEERS")
	if python == "" {
		t.Skip("RLHOST_PEERS is not set: make test-peers")
	}
	for name, m := range networks() {
		for _, masked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s masks=%t", name, masked), func(t *testing.T) {
				p, s := sample(t, m, masked, 10_000)
				dir := t.TempDir()
				for _, f := range []Format{NumPy, ONNX} {
					file, err := Encode(f, p)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, "policy"+f.Suffix()), file, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				given, err := json.Marshal(map[string]any{"obs": s.Obs, "mask": numbers(s.Mask), "actions": m.Actions, "action": s.Action, "log_prob": s.LogProb, "value": s.Value})
				if err != nil {
					t.Fatal(err)
				}
				c := exec.Command(python, "testdata/peer.py", dir)
				c.Stdin = bytes.NewReader(given)
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				} else {
					t.Logf("%s", out)
				}
			})
		}
	}
}

func numbers(b []byte) []int {
	n := make([]int, len(b))
	for i, v := range b {
		n[i] = int(v)
	}
	return n
}
