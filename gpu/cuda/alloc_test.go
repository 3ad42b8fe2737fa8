package cuda_test

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// allocated runs fn and returns how often it allocated, by function: functions of gpu/cuda, gpu/ppo and gpu/policy and their callees, except
// the driver in Go and C's calls of it. Before counting fn runs twice, for allocations of the first run.
func allocated(t *testing.T, fn func()) map[string]int64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // pools are emptied by a collection
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 0
	fn() // its first allocation on a processor after a change of the rate is recorded
	before := profiled()
	fn() // the pools are empty after it
	runtime.MemProfileRate = 1
	fn()
	runtime.MemProfileRate = 0
	found := map[string]int64{}
	for stack, objects := range profiled() {
		if n := objects - before[stack]; n > 0 && ofBackend(stack) {
			found[strings.TrimSpace(stack)] += n
		}
	}
	return found
}

// profiled returns the objects that were allocated under each stack, a function a line.
func profiled() map[string]int64 {
	runtime.GC() // allocations are reported two collections later
	runtime.GC()
	var records []runtime.MemProfileRecord
	n, ok := runtime.MemProfile(nil, true)
	for !ok {
		records = make([]runtime.MemProfileRecord, n+100)
		n, ok = runtime.MemProfile(records, true)
	}
	objects := map[string]int64{}
	for _, r := range records[:n] {
		var stack strings.Builder
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			stack.WriteString(f.Function + "\n")
		}
		objects[stack.String()] += r.AllocObjects
	}
	return objects
}

// ofBackend reports whether a stack is of the backend, and neither within the driver in Go, nor of purego's pool, which has a part for
// each processor that calls move to, nor of the language's caches of type assertions, which grow at one miss of a thousand by chance, nor of
// what looks on.
func ofBackend(stack string) bool {
	const gpu = "github.com/rlhost/rlhost/gpu/"
	for _, other := range []string{gpu + "cuda/fake.", gpu + "cuda/ptx.", "purego.callbackWrap",
		"sync.(*Pool).Get\ngithub.com/ebitengine/purego.", "sync.(*Pool).Put\ngithub.com/ebitengine/purego.",
		"runtime.buildTypeAssertCache\n", "runtime.buildInterfaceSwitchCache\n"} {
		if strings.Contains(stack, other) {
			return false
		}
	}
	_, inner, found := strings.Cut(stack, gpu)
	return found && !strings.HasPrefix(inner, "cuda_test.allocated\n") && !strings.HasPrefix(inner, "cuda_test.profiled\n")
}

var kept []byte

func TestAllocated_TellsWhoseItIs(t *testing.T) {
	b, d := fakeOnly(t, fake.Options{})
	n := small()
	a, err := policy.NewActor(b, &n, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	w := policy.Weights{Params: parameters(&n)}
	before := d.Calls("cuMemcpyAsync")
	found := allocated(t, func() {
		if err := a.Load(w); err != nil {
			t.Fatal(err)
		}
		kept = make([]byte, 1<<10)
	})
	if d.Calls("cuMemcpyAsync") == before {
		t.Error("the driver in Go was not called")
	}
	for stack, times := range found {
		if times != 1 || !strings.Contains(stack, "TestAllocated_TellsWhoseItIs.func1") {
			t.Errorf("%d times:\n%s", times, stack)
		}
	}
	if len(found) != 1 {
		t.Errorf("%d functions allocate, want the one of this test", len(found))
	}
}

// Neither acting nor learning allocates once it has seen its largest input. policytest cannot tell over the driver in Go, which does.
func TestBackend_AllocatesNothing(t *testing.T) {
	b, _ := backendOn(t, fake.Options{})
	for name, o := range networks {
		t.Run(name, func(t *testing.T) {
			n, params := &o.Network, parameters(&o.Network)
			o.Steps, o.Envs, o.Blocks = max(o.Network.Chunk, 2), 6, 1
			data := policytest.Acted(t, cpu.New(), params, o)
			a, err := policy.NewActor(b, n, 8)
			if err == nil {
				err = a.Load(policy.Weights{Params: params, ObsMean: data.ObsMean, ObsScale: data.ObsScale})
			}
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			requests := policytest.Requests(n, data, data.Blocks[0], 0, 5)
			c := ppo.Defaults()
			c.Epochs, c.Minibatch, c.VTrace = 1, 48, o.SoA
			l, err := ppo.NewLearner(b, n, params, c)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			for what, do := range map[string]func() error{
				"Act":    func() error { return a.Act(requests) },
				"Update": func() error { _, err := l.Update(data, rates); return err },
			} {
				for stack, times := range allocated(t, func() {
					if err := do(); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}) {
					t.Errorf("%s allocates %d times:\n%s", what, times, stack)
				}
			}
		})
	}
}
