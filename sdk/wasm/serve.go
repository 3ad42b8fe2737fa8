package wasm

import (
	"encoding"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// Serve registers the environment that this guest offers; a guest calls it once, in init. newEnv makes one
// environment and reads its arguments.
func Serve[A sdk.Action, O sdk.Element, E sdk.Env[A, O]](spec sdk.Spec, newEnv func(*sdk.Config) (E, error)) {
	_, masked := any(*new(E)).(sdk.Masker)
	served = &program[A, O]{spec: spec, masked: masked, make: func(c *sdk.Config, n int) (sdk.Batch[A, O], error) {
		return newSingles[A, O](c, n, newEnv)
	}}
}

// ServeBatch registers a vectorised environment; newBatch makes n environments.
func ServeBatch[A sdk.Action, O sdk.Element, B sdk.Batch[A, O]](spec sdk.Spec, newBatch func(c *sdk.Config, n int) (B, error)) {
	served = &program[A, O]{spec: spec, make: func(c *sdk.Config, n int) (sdk.Batch[A, O], error) {
		return newBatch(c, n)
	}}
}

// served is what the exports work on: a guest has one environment, and its exports have no other way to it.
var served server

// server is a program of any element types.
type server interface {
	describe(config string) ([]byte, error)
	create(config string, n int, mode hostabi.Autoreset) (instance, hostabi.Status, error)
}

// instance is a batch of any element types.
type instance interface {
	bind(bindings []hostabi.Binding) hostabi.Status
	reset(t uint32, mask []uint8, seeds []byte) hostabi.Status
	step(t uint32, first, count int) hostabi.Status
	save(i int) ([]byte, hostabi.Status, error)
	load(i int, data []byte) (hostabi.Status, error)
	render(i int) (string, hostabi.Status)
	size() int
	current() int
}

type program[A sdk.Action, O sdk.Element] struct {
	spec   sdk.Spec
	masked bool
	make   func(*sdk.Config, int) (sdk.Batch[A, O], error)
}

// resolve returns the spec for a configuration.
func (p *program[A, O]) resolve(c *sdk.Config) (sdk.Spec, error) {
	spec := p.spec
	if spec.Describe != nil {
		spec.Describe(c, &spec)
	}
	if err := checkSpace("action", spec.Action); err != nil {
		return spec, err
	}
	return spec, checkSpace("observation", spec.Obs)
}

// maxElems bounds one row, so that no size that follows from it overflows 32 bits.
const maxElems = 1 << 26

func checkSpace(what string, s sdk.Space) error {
	if len(s.Shape) > hostabi.MaxRank {
		return errors.New(what + ": more than " + strconv.Itoa(hostabi.MaxRank) + " dimensions")
	}
	n := 1
	for _, dim := range s.Shape {
		if dim < 1 || dim > maxElems/n {
			return errors.New(what + ": impossible dimension " + strconv.Itoa(dim))
		}
		n *= dim
	}
	if s.N < 0 || s.N > maxElems/n {
		return errors.New(what + ": impossible number of values " + strconv.Itoa(s.N))
	}
	for _, count := range s.Counts {
		if count < 1 || count > maxElems/n {
			return errors.New(what + ": impossible number of values " + strconv.Itoa(count))
		}
	}
	for _, list := range []int{len(s.Counts), len(s.Lows), len(s.Highs)} {
		if list != 0 && list != n {
			return errors.New(what + ": " + strconv.Itoa(list) + " counts or bounds for " + strconv.Itoa(n) + " elements")
		}
	}
	if len(s.Lows) != len(s.Highs) || len(s.Counts) > 0 && s.N > 0 {
		return errors.New(what + ": give lows and highs, and either n or counts")
	}
	return nil
}

// tensors returns the table of tensors in the order in which they are bound.
func (p *program[A, O]) tensors(spec *sdk.Spec) []described {
	const at, at1, once = hostabi.TensorAtT, hostabi.TensorAtT1, hostabi.TensorNoTime
	flag := sdk.Space{High: 1}
	list := []described{
		tensorOf(hostabi.RoleAction, dtypeOf[A](), at, "", spec.Action),
		tensorOf(hostabi.RoleObservation, dtypeOf[O](), at1, "", spec.Obs),
		tensorOf(hostabi.RoleReward, hostabi.F32, at, "", sdk.Space{}),
		tensorOf(hostabi.RoleTerminated, hostabi.U8, at, "", flag),
		tensorOf(hostabi.RoleTruncated, hostabi.U8, at, "", flag),
		tensorOf(hostabi.RoleFinalObservation, dtypeOf[O](), once, "", spec.Obs),
	}
	if p.masked && spec.Action.Choices() > 0 {
		mask := sdk.Space{Shape: []int{spec.Action.Choices()}, High: 1}
		list = append(list, tensorOf(hostabi.RoleActionMask, hostabi.U8, at1, "", mask))
	}
	return list
}

// tensorOf describes a tensor; it is called name where its space has no name of its own.
func tensorOf(role hostabi.Role, dtype hostabi.DType, flags hostabi.TensorFlags, path string, s sdk.Space) described {
	d := described{space: s, path: path, TensorDesc: hostabi.TensorDesc{Role: role, DType: dtype, Flags: flags, Rank: uint8(len(s.Shape)),
		Low: s.Low, High: s.High, N: uint32(s.N), Start: int32(s.Start), Scale: s.Scale}}
	for i, dim := range s.Shape {
		d.Shape[i] = uint32(dim)
	}
	if s.Name != "" {
		d.path = s.Name
	}
	if s.Low == s.High && s.N == 0 && s.Counts == nil && s.Lows == nil {
		d.Flags |= hostabi.TensorNoLow | hostabi.TensorNoHigh
	}
	if s.Binary {
		d.Flags |= hostabi.TensorBinary
	}
	if s.Picture {
		d.Flags |= hostabi.TensorImageHWC
	}
	return d
}

// described is a tensor with the name and the numbers that its record refers to.
type described struct {
	hostabi.TensorDesc
	space sdk.Space
	path  string
}

// count returns how many values element i has, 0 for a Box.
func (d *described) count(i int) uint32 {
	if len(d.space.Counts) > 0 {
		return uint32(d.space.Counts[i])
	}
	return d.N
}

// appendValues appends the numbers of each element: counts, or bounds.
func (d *described) appendValues(b []byte) []byte {
	le := binary.LittleEndian
	for _, count := range d.space.Counts {
		b = le.AppendUint32(b, uint32(count))
	}
	for _, list := range [][]float32{d.space.Lows, d.space.Highs} {
		for _, bound := range list {
			b = le.AppendUint32(b, math.Float32bits(bound))
		}
	}
	return b
}

func dtypeOf[T any]() hostabi.DType {
	switch any(*new(T)).(type) {
	case uint8:
		return hostabi.U8
	case int8:
		return hostabi.I8
	case int16:
		return hostabi.I16
	case int32:
		return hostabi.I32
	case int64:
		return hostabi.I64
	case float64:
		return hostabi.F64
	default:
		return hostabi.F32
	}
}

// describe returns the bytes of a Spec and its tensors.
func (p *program[A, O]) describe(config string) ([]byte, error) {
	spec, err := p.resolve(sdk.ParseConfig(config))
	if err != nil {
		return nil, err
	}
	tensors := p.tensors(&spec)
	head := hostabi.Spec{
		Size:     hostabi.SpecBytes,
		ABIMajor: hostabi.EnvABI.Major, ABIMinor: hostabi.EnvABI.Minor,
		Caps:        hostabi.CapStrides,
		TensorBytes: hostabi.TensorBytes, BindingBytes: hostabi.BindingBytes, GroupBytes: hostabi.GroupBytes, ArgBytes: hostabi.ArgBytes,
		Tensors:         uint32(len(tensors)),
		MaxEnvs:         uint32(spec.MaxEnvs),
		EpisodeLimit:    uint32(spec.EpisodeLimit),
		Autoreset:       hostabi.NextStep | hostabi.SameStep | hostabi.Disabled,
		RewardThreshold: float32(math.NaN()),
		StateVersion:    spec.StateVersion,
	}
	if spec.PreferSoA {
		head.Caps |= hostabi.CapPreferSoA
	}
	names := stringTable{0}
	name, version, _ := strings.Cut(spec.Name, "@")
	head.Name, head.Version = names.add(name), names.add(version)
	records := hostabi.SpecBytes + len(tensors)*hostabi.TensorBytes
	var values []byte
	for i := range tensors {
		tensors[i].Path = names.add(tensors[i].path)
		at := records + len(values)
		if values = tensors[i].appendValues(values); records+len(values) > at {
			tensors[i].Values = uint32(at)
		}
	}
	head.StringsAt, head.StringsLen = uint32(records+len(values)), uint32(len(names))
	data := append([]byte(nil), bytesOf(&head)...)
	for i := range tensors {
		data = append(data, bytesOf(&tensors[i].TensorDesc)...)
	}
	return append(append(data, values...), names...), nil
}

// stringTable is the string table of a description.
type stringTable []byte

// add returns where a string lies in the table.
func (t *stringTable) add(s string) uint32 {
	if s == "" {
		return 0
	}
	at := len(*t)
	*t = append(append(*t, s...), 0)
	return uint32(at)
}

func (p *program[A, O]) create(config string, n int, mode hostabi.Autoreset) (instance, hostabi.Status, error) {
	c := sdk.ParseConfig(config)
	spec, err := p.resolve(c)
	if err != nil {
		return nil, hostabi.StatusConfig, err
	}
	if mode != hostabi.NextStep && mode != hostabi.SameStep && mode != hostabi.Disabled {
		return nil, hostabi.StatusUnsupported, errors.New("autoreset mode " + strconv.Itoa(int(mode)) + " does not exist")
	}
	row := max(spec.Obs.Elems(), spec.Action.Elems(), spec.Action.Choices())
	if n < 1 || n > math.MaxInt32/(8*row) || (spec.MaxEnvs > 0 && n > spec.MaxEnvs) {
		return nil, hostabi.StatusArgument, errors.New(strconv.Itoa(n) + " environments are not possible")
	}
	envs, err := p.make(c, n)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		return nil, hostabi.StatusConfig, err
	}
	return newBatch[A, O](p.tensors(&spec), envs, n, mode, spec.StateVersion), hostabi.StatusOK, nil
}

// singles makes a batch of environments that step one by one.
type singles[A sdk.Action, O sdk.Element, E sdk.Env[A, O]] struct {
	envs []E
	now  int
}

func newSingles[A sdk.Action, O sdk.Element, E sdk.Env[A, O]](c *sdk.Config, n int, newEnv func(*sdk.Config) (E, error)) (sdk.Batch[A, O], error) {
	s := &singles[A, O, E]{envs: make([]E, n)}
	for i := range s.envs {
		env, err := newEnv(c)
		if err != nil {
			return nil, err
		}
		s.envs[i] = env
	}
	return s, nil
}

func (s *singles[A, O, E]) Reset(i int, rng *sdk.Rand, obs []O) {
	s.now = i
	s.envs[i].Reset(rng, obs)
}

func (s *singles[A, O, E]) Step(first int, rngs []sdk.Rand, rows sdk.Rows[A, O]) {
	n := len(rows.Rewards)
	actionElems, obsElems := len(rows.Actions)/n, len(rows.Obs)/n
	terminated, truncated, rngs := rows.Terminated[:n], rows.Truncated[:n], rngs[:n]
	for i, env := range s.envs[first : first+n] {
		s.now = first + i
		r := env.Step(&rngs[i], rows.Actions[i*actionElems:][:actionElems:actionElems], rows.Obs[i*obsElems:][:obsElems:obsElems])
		rows.Rewards[i] = r.Reward
		terminated[i], truncated[i] = flag(r.Terminated), flag(r.Truncated)
	}
}

func flag(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}

func (s *singles[A, O, E]) current() int { return s.now }

func (s *singles[A, O, E]) mask(i int, legal []uint8) { any(s.envs[i]).(sdk.Masker).ActionMask(legal) }

// stringer is fmt.Stringer, without package fmt: it would make a guest half as large again.
type stringer interface{ String() string }

func (s *singles[A, O, E]) text(i int) (string, bool) {
	env, ok := any(s.envs[i]).(stringer)
	if !ok {
		return "", false
	}
	return env.String(), true
}

func (s *singles[A, O, E]) AppendEnv(dst []byte, i int) ([]byte, error) {
	env, ok := any(s.envs[i]).(encoding.BinaryAppender)
	if !ok {
		return nil, errUnsupported
	}
	return env.AppendBinary(dst)
}

func (s *singles[A, O, E]) LoadEnv(i int, data []byte) error {
	env, ok := any(s.envs[i]).(encoding.BinaryUnmarshaler)
	if !ok {
		return errUnsupported
	}
	return env.UnmarshalBinary(data)
}
