package cuda_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// backendOn returns a backend over a driver in Go, which must be left as it was found. With RLHOST_CUDA_DRIVER it is over the one
// that this names. Either is closed when its test has ended, and whatever it held with it.
func backendOn(t testing.TB, o fake.Options) (*cuda.Backend, *fake.Driver) {
	t.Helper()
	if os.Getenv("RLHOST_CUDA_DRIVER") != "" {
		b := cuda.New(named())
		closes(t, b.Close)
		return b, nil
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
		t.Logf("seed %d", o.Seed)
	}
	d := fake.New(o)
	b := cuda.New(cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }})
	closes(t, d.Close)
	closes(t, b.Close)
	return b, d
}

// closes has a test close something at its end, the last first.
func closes(t testing.TB, close func() error) {
	t.Cleanup(func() {
		if err := close(); err != nil {
			t.Error(err)
		}
	})
}

// smoke are networks that TestBackend takes where it has seconds: one with masks whose policy and value share all, one that remembers.
var smoke = []string{"6-[]-3 tanh shared", "a gated recurrent unit in chunks of one row"}

// pictures are networks of which the interpreter makes one update in seconds. A GPU makes it in no time.
var pictures = []string{
	"residual blocks", "convolutions in tiles", "stacked frames of bytes", "stacked frames with the channels first", "joined and normalised images",
	"strided convolutions", "pictures of bytes", "images with activations that are no functions of their result",
}

// without names the networks of policytest that this backend leaves out.
var without = []string{
	// By their names in policytest.Cases.
}

// networks yields the others.
func networks(yield func(name string, o policytest.Options) bool) {
	for name, o := range policytest.Cases {
		if !slices.Contains(without, name) && !yield(name, o) {
			return
		}
	}
}

// Over the interpreter the suite takes minutes for all networks: make test-kernels. The tests below take every network once.
func TestBackend(t *testing.T) {
	var all []string
	for name := range policytest.Cases {
		all = append(all, name)
	}
	for _, name := range pictures {
		if !slices.Contains(all, name) {
			t.Errorf("there is no network %q", name)
		}
	}
	names := append(slices.Clone(smoke), without...)
	if os.Getenv("RLHOST_LONG") != "" {
		names = all
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			tolerance := policytest.Float32
			tolerance.Without = without
			if name := os.Getenv("RLHOST_CUDA_DRIVER"); name == "" || name == "fake" {
				tolerance.Brief = pictures
			}
			if tolerance.Allocates = !countsAllocations(); tolerance.Allocates {
				t.Parallel() // a test that counts allocations counts the other tests', too: testing refuses it
			}
			b, _ := backendOn(t, fake.Options{})
			policytest.TestNetwork(t, b, tolerance, name)
		})
	}
}

// countsAllocations reports whether the suite is to hold that nothing is allocated: not over the driver in Go, which allocates itself (see
// TestBackend_AllocatesNothing), unless RLHOST_CUDA_COUNTS forces what runs where there is a GPU.
func countsAllocations() bool {
	name := os.Getenv("RLHOST_CUDA_DRIVER")
	return name != "" && name != "fake" || os.Getenv("RLHOST_CUDA_COUNTS") != ""
}

// On a machine with a GPU the suite counts allocations, which testing refuses within parallel tests by a panic that ends all of them. Here it
// runs so over the driver in Go, whose own allocations are the only thing that it may complain of.
func TestBackend_RunsAsOnHardware(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.v", "-test.run", `^TestBackend$/.*/(do_not_allocate|is_refused)`)
	c.Env = append(os.Environ(), "RLHOST_CUDA_DRIVER=fake", "RLHOST_CUDA_COUNTS=1", "RLHOST_LONG=")
	out, _ := c.CombinedOutput() // fails: see above
	if bytes.Contains(out, []byte("panic:")) {
		t.Fatalf("%s", out)
	}
	for _, name := range smoke {
		test := "TestBackend/" + strings.ReplaceAll(name, " ", "_") + "/"
		for _, want := range []string{"--- FAIL: " + test + "acting_and_updating_do_not_allocate", "--- PASS: " + test + "what_does_not_fit_is_refused"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("no line %q in\n%s", want, out)
			}
		}
	}
	if n := bytes.Count(out, []byte("allocates ")); n != 2*len(smoke) {
		t.Errorf("allocations are counted %d times, want for Act and Update of each network:\n%s", n, out)
	}
}

// parameters returns initial parameters of a network, with something in every bias.
func parameters(n *policy.Network) []float32 {
	p := policy.Init(n, 3)
	for i := range p {
		p[i] += 0.05 * float32(math.Sin(float64(i)))
	}
	return p
}

// inTiles reports whether the processor computes a convolution of the network in tiles, and so rounds otherwise.
func inTiles(n *policy.Network) bool {
	shapes, _ := n.Shapes()
	return slices.ContainsFunc(n.Nodes, func(p policy.Node) bool {
		if p.Conv2D == nil {
			return false
		}
		_, tiled := p.Conv2D.Tiling(shapes[p.In[0]])
		return tiled
	})
}

func TestActor_HasTheProcessorsBits(t *testing.T) {
	processor := cpu.New()
	if processor.Kernels() == "generic" {
		t.Skip("this processor has no fused multiply-add")
	}
	b, _ := backendOn(t, fake.Options{})
	for name, o := range networks {
		t.Run(name, func(t *testing.T) {
			params := parameters(&o.Network)
			o.Steps = o.Network.Memory().Chunk + 2
			if c := o.Network.Chunk; c > 0 {
				o.Steps = c
			}
			got, want := policytest.Acted(t, b, params, o), policytest.Acted(t, processor, params, o)
			near := inTiles(&o.Network)
			for i := range got.Blocks {
				if near {
					nearValues(t, &got.Blocks[i], &want.Blocks[i])
				} else if !bytes.Equal(got.Blocks[i].Mem, want.Blocks[i].Mem) {
					t.Errorf("block %d differs", i)
				}
			}
		})
	}
}

// nearValues compares the values of two blocks that were rounded differently.
func nearValues(t *testing.T, got, want *trajectory.Trajectory) {
	t.Helper()
	for i, v := range want.Float32(trajectory.Value) {
		if d := got.Float32(trajectory.Value)[i] - v; !(d < 1e-5 && d > -1e-5) {
			t.Fatalf("value %d is off by %v", i, d)
		}
	}
}

var rates = ppo.Rates{LearningRate: 1e-3, Clip: 0.2, Entropy: 0.01}

// learn returns what a backend learns of a dataset.
func learn(t *testing.T, b policy.Backend, n *policy.Network, c ppo.Config, d *policy.Dataset) (ppo.State, ppo.Stats) {
	t.Helper()
	l, err := ppo.NewLearner(b, n, parameters(n), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	stats, err := l.Update(d, rates)
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	return s, stats
}

// Every network, on two devices: the bits are the same, and the parameters are the processor's but for the order of sums.
func TestLearner_LearnsTheSameOnEveryDevice(t *testing.T) {
	small, _ := backendOn(t, fake.Options{Processors: 1})
	large, _ := backendOn(t, fake.Options{Processors: 132, Capability: 80})
	for name, o := range networks {
		t.Run(name, func(t *testing.T) {
			c := ppo.Defaults()
			c.Epochs, c.Minibatch, c.VTrace, c.BurnInRows = 1, 48, o.SoA, o.Network.Chunk/3
			o.Steps = 3
			if o.Network.Chunk > 0 {
				o.Steps = o.Network.Chunk
			}
			d := policytest.Acted(t, cpu.New(), parameters(&o.Network), o)
			want, _ := learn(t, cpu.New(), &o.Network, c, d)
			first, stats := learn(t, small, &o.Network, c, d)
			second, again := learn(t, large, &o.Network, c, d)
			if !slices.Equal(first.Params, second.Params) || !slices.Equal(first.AdamV, second.AdamV) || stats != again {
				t.Error("two devices learn different parameters")
			}
			for i, p := range want.Params {
				if math.Abs(float64(p-first.Params[i])) > 2e-5 {
					t.Fatalf("parameter %d is %v, the processor's %v", i, first.Params[i], p)
				}
			}
		})
	}
}

// An update is submitted as a whole: the host waits once, at its end.
func TestLearner_WaitsOnce(t *testing.T) {
	b, d := backendOn(t, fake.Options{})
	if d == nil {
		t.Skip("needs the driver in Go")
	}
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}.Network()
	data := policytest.Acted(t, cpu.New(), parameters(&n), policytest.Options{Network: n, Steps: 4, Envs: 8, Blocks: 2, Seed: 1})
	c := ppo.Defaults()
	c.Minibatch, c.TargetKL, c.AdaptiveKL, c.VTrace, c.VTraceRecompute = 16, 0.5, 0.01, true, ppo.RecomputeEpoch
	l, err := ppo.NewLearner(b, &n, parameters(&n), c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 3 {
		before := d.Calls("cuStreamSynchronize")
		if _, err := l.Update(data, rates); err != nil {
			t.Fatal(err)
		}
		if waits := d.Calls("cuStreamSynchronize") - before; i > 0 && waits != 1 {
			t.Errorf("update %d waits %d times, want once", i, waits)
		}
	}
}

func TestCompile_NamesTheNodeThatItCannotCompute(t *testing.T) {
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh, ShareTrunk: true}.Network()
	head := n.Policy[0].From
	n.Nodes = append(n.Nodes, policy.Node{Name: "odd", In: []string{head}, Activation: &layer.Activation{Func: layer.Tanh}})
	n.Policy[0].From = "odd"
	_, err := cuda.New(cuda.Options{}).Compile(&n)
	if !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), "odd") {
		t.Errorf("Compile = %v, want ErrUnsupported that names the node", err)
	}
}

// Batches of no rows, and of more than were promised, are acted on like others.
func TestActor_TakesAnyNumberOfRows(t *testing.T) {
	b, _ := backendOn(t, fake.Options{})
	n := policy.MLP{Obs: 4, Actions: 3, Hidden: []int{8}, Activation: policy.Tanh}.Network()
	o := policytest.Options{Network: n, Steps: 1, Envs: 40, Blocks: 1, Seed: 1}
	want := policytest.Acted(t, b, parameters(&n), o)
	a, err := policy.NewActor(b, &n, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got := policytest.NewDataset(t, o)
	if err := a.Load(policy.Weights{Params: parameters(&n)}); err != nil {
		t.Fatal(err)
	}
	policytest.Act(t, &n, a, got, 40)
	if !bytes.Equal(got.Blocks[0].Mem, want.Blocks[0].Mem) {
		t.Error("40 rows of an actor for 7 act differently")
	}
	empty := policytest.Requests(&n, got, got.Blocks[0], 0, 40)[0]
	empty = empty.Slice(0, 0, new(policy.Views))
	empty.Obs = []trajectory.Matrix{{DType: empty.Obs[0].DType, Elems: empty.Obs[0].Elems, StrideRow: 4, StrideElem: 4}}
	for i := range empty.Action {
		empty.Action[i].Elems, empty.Action[i].Rows = 1, 0
	}
	if err := a.Act([]policy.Request{empty}); err != nil {
		t.Errorf("no rows: %v", err)
	}
	if err := a.Act(nil); err != nil {
		t.Errorf("no requests: %v", err)
	}
}
