package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// What a host does with a mutant.
const (
	runs   = "runs"
	wrong  = "wrong"   // E018 without ErrNotYet: the author's mistake
	tooOld = "too old" // E050
	notYet = "not yet" // E018 with ErrNotYet: what this host does not run
)

// Where a description has what mutants change: records, and fields in them.
const (
	action, observation, reward, terminated, truncated, final = 0x88, 0x108, 0x188, 0x208, 0x288, 0x308
	more                                                      = 0x388 // a seventh tensor

	capsAt, needsAt, recordsAt, tensorsAt, groupsAt, argsAt       = 8, 16, 24, 32, 36, 40
	autoresetAt, flagsAt, renderAt, widthAt, fpsAt, lowAt, highAt = 60, 64, 68, 72, 80, 84, 88
	nameAt, reservedAt                                            = 104, 124

	roleAt, indexAt, groupAt, dtypeAt, rankAt, tensorFlagsAt, shapeAt = 0, 2, 4, 6, 7, 8, 12
	boundAt, nAt, startAt, valuesAt, pairAt, spareAt, scaleAt, pathAt = 36, 44, 48, 52, 56, 58, 60, 64
	lastAt                                                            = 124
)

// mutant is a change of the right module, and what the page says about it.
type mutant struct {
	name, want string
	change     func(d description)
}

// description is one of the right module, whose bytes a mutant changes.
type description []byte

func (d description) u8(at int, v uint8)   { d[at] = v }
func (d description) u16(at int, v uint16) { binary.LittleEndian.PutUint16(d[at:], v) }
func (d description) u32(at int, v uint32) { binary.LittleEndian.PutUint32(d[at:], v) }
func (d description) u64(at int, v uint64) { binary.LittleEndian.PutUint64(d[at:], v) }
func (d description) f32(at int, v float64) {
	binary.LittleEndian.PutUint32(d[at:], math.Float32bits(float32(v)))
}

// strings returns where the table is.
func (d description) strings() int { return int(binary.LittleEndian.Uint32(d[44:])) }

// add makes a seventh tensor of f32, of a role, with flags.
func (d description) add(role uint16, flags uint32) {
	d.u32(tensorsAt, 7)
	d.u16(more+roleAt, role)
	d.u8(more+dtypeAt, uint8(hostabi.F32))
	d.u32(more+tensorFlagsAt, flags)
}

// later makes it one of the next minor version.
func (d description) later() { d.u16(6, hostabi.EnvABI.Minor+1) }

// setting returns a mutant that sets a field of 4 bytes.
func setting(name string, at int, v uint32, want string) mutant {
	return mutant{fmt.Sprintf("%s %#x", name, v), want, func(d description) { d.u32(at, v) }}
}

// hints are mutants with what a later minor version may add for hosts that look at it.
func hints() (list []mutant) {
	for bit := 2; bit < 64; bit += 5 {
		list = append(list, mutant{fmt.Sprint("a capability ", bit), runs, func(d description) { d.u64(capsAt, 1<<bit) }})
	}
	for bit := range 32 {
		if bit%4 == 1 {
			list = append(list, mutant{fmt.Sprint("a flag of the head ", bit), runs, func(d description) { d.u32(flagsAt, 1<<bit) }})
		}
		if bit > 2 && bit%4 == 3 {
			list = append(list, mutant{fmt.Sprint("a form of picture ", bit), runs, func(d description) { d.u32(renderAt, 1<<bit) }},
				mutant{fmt.Sprint("a mode besides ", bit), runs, func(d description) { d.u32(autoresetAt, 7|1<<bit) }},
				mutant{fmt.Sprint("that mode alone ", bit), wrong, func(d description) { d.u32(autoresetAt, 1<<bit) }})
		}
	}
	for _, role := range []uint16{0, 10, 11, 13, 15, 16, 17, 19, 77, 900, 65535} {
		list = append(list,
			mutant{fmt.Sprint("a role ", role), runs, func(d description) { d.add(role, 2) }},
			mutant{fmt.Sprint("an optional role ", role), runs, func(d description) { d.add(role, 16|4) }},
			mutant{fmt.Sprint("an optional role of an unknown type ", role), runs, func(d description) { d.add(role, 16|4); d.u8(more+dtypeAt, 11); d.u8(more+rankAt, 9) }},
			mutant{fmt.Sprint("an optional role with values ", role), runs, func(d description) { d.add(role, 16|4); d.u32(more+valuesAt, 1<<30) }},
			mutant{fmt.Sprint("a role with an unknown flag ", role), runs, func(d description) { d.add(role, 2|1<<30) }})
	}
	return list
}

// older are mutants with what a host must know.
func older() (list []mutant) {
	for _, bit := range []int{4, 6, 8, 9, 10, 12, 31, 63} {
		list = append(list,
			mutant{fmt.Sprint("a need ", bit), tooOld, func(d description) { d.u64(needsAt, 1<<bit) }},
			mutant{fmt.Sprint("a need beside a capability ", bit), tooOld, func(d description) { d.u64(needsAt, 1<<bit); d.u64(capsAt, 1<<40) }},
			mutant{fmt.Sprint("a need beside a reserved byte ", bit), tooOld, func(d description) { d.u64(needsAt, 1<<bit); d.u8(reservedAt, 1) }},
			mutant{fmt.Sprint("a need beside an unknown type ", bit), tooOld, func(d description) { d.u64(needsAt, 1<<bit); d.u8(observation+dtypeAt, 11) }})
	}
	for _, role := range []uint16{10, 13, 17, 77, 900} {
		list = append(list, mutant{fmt.Sprint("a critical role ", role), tooOld, func(d description) { d.add(role, 32|2) }})
	}
	for _, major := range []uint16{2, 3, 65535} {
		list = append(list, mutant{fmt.Sprint("a major version ", major), tooOld, func(d description) { d.u16(4, major) }})
	}
	unknown := map[string]func(d description){
		"a type": func(d description) { d.u8(observation+dtypeAt, 11); d.u8(final+dtypeAt, 11) }, "a flag of a tensor": func(d description) { d.u32(reward+tensorFlagsAt, 2|1<<25) },
		"a reserved byte of the head": func(d description) { d.u8(reservedAt, 1) }, "a reserved byte of a tensor": func(d description) { d.u8(action+lastAt, 1) },
		"a role of an unknown type": func(d description) { d.add(77, 2); d.u8(more+dtypeAt, 11) }, "a rank": func(d description) { d.u8(observation+rankAt, 7) },
	}
	for name, change := range unknown {
		list = append(list, mutant{name, wrong, change}, mutant{name + " in a later minor version", tooOld, func(d description) { d.later(); change(d) }})
	}
	return list
}

// mistakes are mutants that are wrong whatever the version is.
func mistakes() (list []mutant) {
	for _, n := range []uint16{0, 3, 127, 126, 4100} {
		list = append(list, mutant{fmt.Sprint("tensor_bytes ", n), wrong, func(d description) { d.u16(recordsAt, n) }})
	}
	for _, n := range []uint16{0, 44, 50, 4100} {
		list = append(list, mutant{fmt.Sprint("binding_bytes ", n), wrong, func(d description) { d.u16(recordsAt+2, n) }})
	}
	for name, tensor := range map[string]int{"reward": reward, "terminated": terminated, "truncated": truncated, "action": action, "observation": observation} {
		list = append(list,
			mutant{"optional " + name, wrong, func(d description) { d[tensor+tensorFlagsAt] |= 16 }},
			mutant{"no " + name, wrong, func(d description) { d.u16(tensor+roleAt, 900) }},
			mutant{"an index of " + name, wrong, func(d description) { d.u16(tensor+indexAt, 1) }},
			mutant{"a group of " + name, wrong, func(d description) { d.u16(tensor+groupAt, 1) }},
			mutant{"a rank of 7 of " + name, wrong, func(d description) { d.u8(tensor+rankAt, 7) }},
			mutant{"a reserved byte of " + name, wrong, func(d description) { d.u8(tensor+lastAt, 1) }},
			mutant{"a spare word of " + name, wrong, func(d description) { d.u16(tensor+spareAt, 1) }},
			mutant{"a dimension beyond the rank of " + name, wrong, func(d description) { d.u32(tensor+shapeAt+20, 2) }},
			mutant{"the axis of time of " + name, wrong, func(d description) { d[tensor+tensorFlagsAt] ^= 2 | 4 }},
			mutant{"no type of " + name, wrong, func(d description) { d.u8(tensor+dtypeAt, 0) }},
			mutant{"one-hot " + name, wrong, func(d description) { d[tensor+tensorFlagsAt+1] |= 4 }},
			mutant{"a scale of " + name, wrong, func(d description) { d.f32(tensor+scaleAt, -1) }},
			mutant{"a path outside of the table of " + name, wrong, func(d description) { d.u32(tensor+pathAt, 4000) }},
			mutant{"reversed bounds of " + name, wrong, func(d description) {
				d[tensor+tensorFlagsAt] &^= 0xc0
				d.f32(tensor+boundAt, 2)
				d.f32(tensor+boundAt+4, 1)
			}})
	}
	for _, dtype := range []uint8{6, 7, 9, 11, 12, 13, 14, 255} {
		list = append(list, mutant{fmt.Sprint("an observation of type ", dtype), wrong, func(d description) { d.u8(observation+dtypeAt, dtype); d.u8(final+dtypeAt, dtype) }})
	}
	return append(list,
		setting("reserved bytes of the head", reservedAt, 1, wrong), setting("no tensors", tensorsAt, 0, wrong), setting("tensors", tensorsAt, 1025, wrong),
		setting("groups", groupsAt, 65, wrong), setting("arguments", argsAt, 257, wrong), setting("no mode", autoresetAt, 0, wrong),
		setting("a Box action, of i32", action+nAt, 0, notYet), setting("a string table", 44, 0x8ff, wrong),
		setting("no name", nameAt, 0, wrong), setting("a name outside of the table", nameAt, 500, wrong), setting("a shape", observation+shapeAt, 1<<31, wrong),
		setting("no elements", observation+shapeAt, 0, wrong), setting("a final observation of another size", final+shapeAt, 3, wrong),
		setting("values in the head", observation+valuesAt, 4, wrong), setting("values at an odd place", observation+valuesAt, 0x7ff, wrong),
		setting("a last action", action+startAt, math.MaxInt32, wrong),
		setting("too many actions", action+nAt, 100000, notYet),
		mutant{"an action of i64", notYet, func(d description) { d.u8(action+dtypeAt, 5) }},
		mutant{"a pair that is not there", wrong, func(d description) { d.u16(final+pairAt, 3) }},
		mutant{"a pair of a reward", wrong, func(d description) { d.u16(reward+pairAt, 1) }},
		mutant{"300 values of u8", wrong, func(d description) {
			for _, at := range []int{observation, final} {
				d.u8(at+dtypeAt, 1)
				d.u32(at+nAt, 300)
			}
		}},
		mutant{"two ways to gather", wrong, func(d description) { d.add(9, 2|1<<13|1<<14) }},
		mutant{"an info of rank 2", wrong, func(d description) {
			d.add(9, 2)
			d.u8(more+rankAt, 2)
			d.u32(more+shapeAt, 1)
			d.u32(more+shapeAt+4, 1)
		}},
		mutant{"a discount of rows 0 to T", wrong, func(d description) { d.add(12, 4) }},
		mutant{"a reset parameter of i32", notYet, func(d description) { d.add(14, 8); d.u8(more+dtypeAt, 4) }},
		mutant{"an optional one", runs, func(d description) { d.add(14, 16|8); d.u8(more+dtypeAt, 4) }},
		mutant{"pictures of no size", wrong, func(d description) { d.u32(renderAt, 2) }},
		mutant{"pictures too wide", wrong, func(d description) { d.u32(renderAt, 2); d.u32(widthAt, 16385); d.u32(widthAt+4, 1) }},
		mutant{"pictures a second", wrong, func(d description) { d.f32(fpsAt, math.NaN()) }},
		mutant{"rewards from 1 to 0", wrong, func(d description) { d.f32(lowAt, 1) }},
		mutant{"rewards to NaN", wrong, func(d description) { d.f32(highAt, math.NaN()) }},
		mutant{"a name with an @", wrong, func(d description) { d[d.strings()+3] = '@' }},
		mutant{"a name that steers a terminal", wrong, func(d description) { d[d.strings()+3] = 0x1b }},
		mutant{"a major version 0", wrong, func(d description) { d.u16(4, 0) }})
}

// rightAt is where a right guest has its description.
const rightAt = 40000

// right is the description that mutants are made from: the tensors of the constants above, with room for a seventh.
func right() description {
	f32 := func(role hostabi.Role, elems uint32) hostabi.Tensor {
		t := hostabi.Tensor{Role: role, DType: hostabi.F32, Flags: hostabi.TensorNoLow | hostabi.TensorNoHigh}
		if elems > 0 {
			t.Rank, t.Shape[0] = 1, elems
		}
		return t
	}
	s := hostabi.EnvSpec{Name: "right@1", ABI: hostabi.EnvABI, Autoreset: hostabi.NextStep | hostabi.SameStep | hostabi.Disabled,
		Tensors: []hostabi.Tensor{{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}, f32(hostabi.RoleObservation, 2), f32(hostabi.RoleReward, 0),
			{Role: hostabi.RoleTerminated, DType: hostabi.U8}, {Role: hostabi.RoleTruncated, DType: hostabi.U8}, f32(hostabi.RoleFinalObservation, 2), {}}}
	d := description(s.Describe())
	clear(d[more : more+hostabi.TensorBytes])
	d.u32(tensorsAt, 6)
	return d
}

// described returns a module with that description.
func described(d description, change wasmtest.Guest) []byte {
	g := change
	n := asm.Const(int32(len(d)))
	functions := map[string]asm.Code{hostabi.ExportDescribe: asm.Get(3) + n + asm.GeU + asm.If + asm.Void + asm.Get(2) + asm.Const(rightAt) + n +
		asm.MemoryCopy + asm.End + n}
	maps.Copy(functions, g.Functions)
	g.Functions = functions
	g.After = func(m *asm.Module) {
		m.Data(rightAt, d)
		if change.After != nil {
			change.After(m)
		}
	}
	return g.Bytes()
}

// treated loads a module, and steps what is loaded. It returns what the host does with it.
func treated(t *testing.T, r *Runtime, m []byte) (string, error) {
	p, err := r.Load(t.Context(), "guest.wasm", m, env.Source{})
	var e *table.Error
	switch {
	case err == nil:
		defer func() { must(t, p.Close()) }()
		spec := p.Spec()
		x, err := p.NewEnv(env.Options{Name: "mutant", Envs: 2, Autoreset: spec.PickAutoreset()})
		if err != nil {
			return "cannot be made", err
		}
		defer func() { must(t, x.Close()) }()
		b := blocks(t, spec, trajectory.Shape{Steps: 2, Envs: 2}, 1)[0]
		return runs, errors.Join(x.Bind(b), x.Reset(0, nil, []uint64{1, 2}), x.Step(0))
	case !errors.As(err, &e):
		return "no error of the table", err
	case e.Code == module.CodeFuture:
		return tooOld, err
	case e.Code != module.CodeDescription:
		return e.Code, err
	case errors.Is(err, hostabi.ErrNotYet):
		return notYet, err
	}
	return wrong, err
}

// Every mutant of a right module is treated as docs/reference/env-abi.md says; none that adds hints of a later minor version is refused.
func TestMutants_AreTreatedAsThePageSays(t *testing.T) {
	r, n := newRuntime(t), 0
	try := func(name, want string, module []byte) {
		n++
		if got, err := treated(t, r, module); got != want || want == runs && err != nil {
			t.Errorf("%s: %s (%v), want %s", name, got, err, want)
		}
	}
	for _, m := range slices.Concat([]mutant{{"the right one", runs, func(description) {}}}, hints(), older(), mistakes()) {
		d := right()
		m.change(d)
		try(m.name, m.want, described(d, wasmtest.Guest{}))
		if m.want == runs {
			d.later()
			try(m.name+" of the next minor version", m.want, described(d, wasmtest.Guest{}))
		}
	}
	for _, m := range modules() {
		try(m.name, m.want, described(right(), m.guest))
	}
	if n < 250 {
		t.Errorf("%d mutants", n)
	}
}

// modules are mutants of what a module exports and imports.
func modules() (list []struct {
	name, want string
	guest      wasmtest.Guest
}) {
	add := func(name, want string, g wasmtest.Guest) {
		list = append(list, struct {
			name, want string
			guest      wasmtest.Guest
		}{name, want, g})
	}
	exports := func(names ...string) func(m *asm.Module) {
		return func(m *asm.Module) {
			for _, name := range names {
				m.Func(name, nil, nil, 0)
			}
		}
	}
	absent := func(name string) map[string]asm.Code { return map[string]asm.Code{name: wasmtest.Absent} }
	for _, besides := range [][]string{{"rl_env_v2"}, {"rl_env_v9", "rl_abi_v1rc"}, {"rl_abi_v1rc"}, {"rl_abi_v1"}, {"rl_frobnicate", "rl_next"}} {
		add(fmt.Sprint("with ", besides), runs, wasmtest.Guest{After: exports(besides...)})
	}
	for want, markers := range map[string][]string{tooOld: {"rl_env_v2", "rl_env_v65535", "rl_abi_v1rc", "rl_abi_v1"}, module.CodeExport: {"rl_component_v1", "rl_env_v0", "rl_env_", "rl_environment"}} {
		for _, marker := range markers {
			add(marker+" alone", want, wasmtest.Guest{Functions: absent(hostabi.ExportABI), After: exports(marker)})
		}
	}
	for _, other := range []string{"rl_component_v1", "rl_component_v2", "rl_component_v1rc"} {
		add("with "+other, module.CodeExport, wasmtest.Guest{After: exports(other)})
	}
	for _, f := range hostabi.EnvExports() {
		if f.Required {
			add("without "+f.Name, module.CodeExport, wasmtest.Guest{Functions: absent(f.Name)})
		} else if f.Name != hostabi.ExportInitialize {
			add(f.Name+" with another signature", module.CodeExport, wasmtest.Guest{Functions: absent(f.Name), After: func(m *asm.Module) {
				m.Func(f.Name, []byte{asm.I64}, nil, 0)
			}})
		}
	}
	imports := func(module, name string, params, results []byte) wasmtest.Guest {
		return wasmtest.Guest{Before: func(m *asm.Module) { m.Import(module, name, params, results) }}
	}
	for _, name := range []string{"launch", "metric", "entropy", "yield"} {
		add("rl."+name, module.CodeImport, imports("rl", name, nil, nil))
		add("rl_optional."+name, runs, imports("rl_optional", name, nil, nil))
		add("rl_optional."+name+" of other types", runs, imports("rl_optional", name, []byte{asm.I64, asm.F64, asm.I32}, []byte{asm.F64}))
	}
	add("rl.log", module.CodeImport, imports("rl", "log", asm.I32s(3), nil))
	add("rl_optional.log", runs, imports("rl_optional", "log", asm.I32s(3), nil))
	add("rl_optional.log with another signature", module.CodeImport, imports("rl_optional", "log", asm.I32s(2), nil))
	add("rl_optional with too many parameters", module.CodeImport, imports("rl_optional", "launch", asm.I32s(17), nil))
	add("WASI preview 2", module.CodeImport, imports("wasi:clocks/monotonic-clock@0.2.0", "now", nil, []byte{asm.I64}))
	return list
}
