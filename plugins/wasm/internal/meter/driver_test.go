package meter

import (
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// fuelSlice is what rl.yield hands out in these tests.
const fuelSlice = 1 << 20

// newWazero returns a runtime with WASI and an rl.yield that never ends a call.
func newWazero(t testing.TB, config wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() { r.Close(ctx) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		t.Fatal(err)
	}
	yield := api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		m.ExportedGlobal(FuelExport).(api.MutableGlobal).Set(fuelSlice)
	})
	_, err := r.NewHostModuleBuilder(YieldModule).NewFunctionBuilder().WithGoModuleFunction(yield, nil, nil).
		Export(YieldName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rewrite(t testing.TB, code []byte) *Result {
	t.Helper()
	m, err := Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	result, err := m.Rewrite()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// guest drives an environment in its own memory.
type guest struct {
	t    testing.TB
	mod  api.Module
	step api.Function
	rows map[hostabi.Role]uint32 // where each tensor lies
	out  []uint32                // start and length of everything that the guest writes
	n    uint32
}

// start instantiates a module, metered or original, and makes n environments that keep no history.
func start(t testing.TB, r wazero.Runtime, code []byte, n uint32) *guest {
	t.Helper()
	ctx := context.Background()
	compiled, err := r.CompileModule(ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	if mg := mod.ExportedGlobal(FuelExport); mg != nil {
		mg.(api.MutableGlobal).Set(1 << 30)
	}
	g := &guest{t: t, mod: mod, rows: map[hostabi.Role]uint32{}, n: n}
	for _, name := range []string{DataCall, StartCall, hostabi.ExportInitialize} {
		if mod.ExportedFunction(name) != nil {
			g.call(name)
		}
	}
	g.bind()
	g.step = mod.ExportedFunction(hostabi.ExportStep)
	return g
}

func (g *guest) call(name string, args ...uint64) uint32 {
	g.t.Helper()
	result, err := g.mod.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	if len(result) == 0 {
		return 0
	}
	if int32(result[0]) < 0 {
		g.t.Fatalf("%s = %v", name, hostabi.Status(int32(result[0])))
	}
	return uint32(result[0])
}

// bind describes, creates and binds, with dense tensors of one row.
func (g *guest) bind() {
	size := g.call(hostabi.ExportDescribe, 0, 0, 0, 0)
	buf := g.call(hostabi.ExportAlloc, uint64(size), 64)
	g.call(hostabi.ExportDescribe, 0, 0, uint64(buf), uint64(size))
	described, _ := g.mod.Memory().Read(buf, size)
	spec, err := hostabi.ParseSpec(described)
	if err != nil {
		g.t.Fatal(err)
	}
	batch := g.call(hostabi.ExportCreate, 0, 0, uint64(g.n), uint64(hostabi.SameStep))
	var bindings []byte
	for _, d := range spec.Tensors {
		bytes := uint32(d.Elems(hostabi.MaxTensorElems) * d.DType.Bytes())
		ptr := g.call(hostabi.ExportAlloc, uint64(bytes*g.n), 64)
		g.rows[d.Role] = ptr
		if d.Role != hostabi.RoleAction {
			g.out = append(g.out, ptr, bytes*g.n)
		}
		record := make([]byte, spec.BindingBytes)
		for i, v := range []uint32{ptr, 0, bytes, 0, uint32(d.DType.Bytes())} {
			binary.LittleEndian.PutUint32(record[4*i:], v)
		}
		bindings = append(bindings, record...)
	}
	at := g.call(hostabi.ExportAlloc, uint64(len(bindings)), 64)
	g.mod.Memory().Write(at, bindings)
	g.call(hostabi.ExportBind, uint64(batch), uint64(at), uint64(len(spec.Tensors)))
	seeds := g.call(hostabi.ExportAlloc, uint64(8*g.n), 64)
	for k := range g.n {
		g.mod.Memory().WriteUint64Le(seeds+8*k, uint64(k)+1)
	}
	g.call(hostabi.ExportReset, uint64(batch), 0, 0, uint64(seeds))
}

// act writes an action for each environment.
func (g *guest) act(x uint64) {
	mem, _ := g.mod.Memory().Read(g.rows[hostabi.RoleAction], 4*g.n)
	for k := range g.n {
		x = x*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint32(mem[4*k:], uint32(x>>63))
	}
}

// play makes steps and returns everything that the guest wrote.
func (g *guest) play(steps int) []byte {
	var log []byte
	for k := range steps {
		g.act(uint64(k))
		g.call(hostabi.ExportStep, 0, 0)
		for at := 0; at < len(g.out); at += 2 {
			b, _ := g.mod.Memory().Read(g.out[at], g.out[at+1])
			log = append(log, b...)
		}
	}
	return log
}

// guests returns the modules of all CartPoles by name.
func guests(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for name, file := range testkit.Guests(t, "cartpole", t.TempDir()) {
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = module
	}
	return all
}
