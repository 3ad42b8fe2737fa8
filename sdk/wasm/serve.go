package wasm

import (
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
	_, tells := any(*new(E)).(sdk.Teller)
	_, turns := any(*new(E)).(sdk.TurnTaker)
	_, takes := any(*new(E)).(sdk.ParamTaker)
	_, respawns := any(*new(E)).(sdk.Respawner)
	_, begins := any(*new(E)).(sdk.ResetTeller)
	shows := showsOf[E]()
	served = &program[A, O]{spec: spec, masked: masked, tells: tells, turns: turns, takes: takes, respawns: respawns, begins: begins, shows: shows, make: func(spec *sdk.Spec, c *sdk.Config, n int) (sdk.Batch[A, O], error) {
		all, err := newEach(spec, c, n, newEnv)
		return &singles[A, O, E]{each: all}, err
	}}
}

// ServeDict registers an environment with several observations, as Serve.
func ServeDict[A sdk.Action, E sdk.DictEnv[A]](spec sdk.Spec, newEnv func(*sdk.Config) (E, error)) {
	_, masked := any(*new(E)).(sdk.Masker)
	_, tells := any(*new(E)).(sdk.Teller)
	_, turns := any(*new(E)).(sdk.TurnTaker)
	_, takes := any(*new(E)).(sdk.ParamTaker)
	_, respawns := any(*new(E)).(sdk.Respawner)
	_, begins := any(*new(E)).(sdk.ResetTeller)
	shows := showsOf[E]()
	create := func(spec *sdk.Spec, c *sdk.Config, n int) (sdk.Batch[A, uint8], error) {
		all, err := newEach(spec, c, n, newEnv)
		return &dicts[A, E]{each: all}, err
	}
	served = &program[A, uint8]{spec: spec, masked: masked, tells: tells, turns: turns, takes: takes, respawns: respawns, begins: begins, shows: shows, dict: true, make: create}
}

// ServeBatch registers a vectorised environment; newBatch makes n environments. It has action masks if it is an
// sdk.BatchMasker.
func ServeBatch[A sdk.Action, O sdk.Element, B sdk.Batch[A, O]](spec sdk.Spec, newBatch func(c *sdk.Config, n int) (B, error)) {
	_, masked := any(*new(B)).(sdk.BatchMasker)
	_, turns := any(*new(B)).(sdk.BatchTurnTaker)
	_, takes := any(*new(B)).(sdk.BatchParamTaker)
	_, respawns := any(*new(B)).(sdk.BatchRespawner)
	_, begins := any(*new(B)).(sdk.BatchResetTeller)
	shows := batchShows[B]()
	served = &program[A, O]{spec: spec, masked: masked, tells: true, turns: turns, takes: takes, respawns: respawns, begins: begins, shows: shows, make: func(_ *sdk.Spec, c *sdk.Config, n int) (sdk.Batch[A, O], error) {
		return newBatch(c, n)
	}}
}

// ServeDictBatch registers a vectorised environment with several observations, as ServeBatch.
func ServeDictBatch[A sdk.Action, B sdk.DictBatch[A]](spec sdk.Spec, newBatch func(c *sdk.Config, n int) (B, error)) {
	_, masked := any(*new(B)).(sdk.BatchMasker)
	_, turns := any(*new(B)).(sdk.BatchTurnTaker)
	_, takes := any(*new(B)).(sdk.BatchParamTaker)
	_, respawns := any(*new(B)).(sdk.BatchRespawner)
	_, begins := any(*new(B)).(sdk.BatchResetTeller)
	shows := batchShows[B]()
	create := func(_ *sdk.Spec, c *sdk.Config, n int) (sdk.Batch[A, uint8], error) {
		own, err := newBatch(c, n)
		return &dictBatch[A, B]{authored: authored[B]{own}}, err
	}
	served = &program[A, uint8]{spec: spec, masked: masked, tells: true, turns: turns, takes: takes, respawns: respawns, begins: begins, shows: shows, dict: true, make: create}
}

// ServeComposite registers an environment with several actions, as Serve.
func ServeComposite[E sdk.CompositeEnv](spec sdk.Spec, newEnv func(*sdk.Config) (E, error)) {
	_, masked := any(*new(E)).(sdk.Masker)
	_, tells := any(*new(E)).(sdk.Teller)
	_, turns := any(*new(E)).(sdk.TurnTaker)
	_, takes := any(*new(E)).(sdk.ParamTaker)
	_, respawns := any(*new(E)).(sdk.Respawner)
	_, begins := any(*new(E)).(sdk.ResetTeller)
	shows := showsOf[E]()
	create := func(spec *sdk.Spec, c *sdk.Config, n int) (sdk.Batch[int32, uint8], error) {
		all, err := newEach(spec, c, n, newEnv)
		return &composites[E]{each: all}, err
	}
	served = &program[int32, uint8]{spec: spec, masked: masked, tells: tells, turns: turns, takes: takes, respawns: respawns, begins: begins, shows: shows, dict: true, composite: true, make: create}
}

// ServeCompositeBatch registers a vectorised environment with several actions, as ServeBatch.
func ServeCompositeBatch[B sdk.CompositeBatch](spec sdk.Spec, newBatch func(c *sdk.Config, n int) (B, error)) {
	_, masked := any(*new(B)).(sdk.BatchMasker)
	_, turns := any(*new(B)).(sdk.BatchTurnTaker)
	_, takes := any(*new(B)).(sdk.BatchParamTaker)
	_, respawns := any(*new(B)).(sdk.BatchRespawner)
	_, begins := any(*new(B)).(sdk.BatchResetTeller)
	shows := batchShows[B]()
	create := func(_ *sdk.Spec, c *sdk.Config, n int) (sdk.Batch[int32, uint8], error) {
		own, err := newBatch(c, n)
		return &compositeBatch[B]{authored: authored[B]{own}}, err
	}
	served = &program[int32, uint8]{spec: spec, masked: masked, tells: true, turns: turns, takes: takes, respawns: respawns, begins: begins, shows: shows, dict: true, composite: true, make: create}
}

// served is the environment of the exports: a guest has one, and its exports have no other way to it.
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
	text(i int) (string, hostabi.Status)
	draw(i int, to func(n int) []byte) int32
	size() int
	current() int
}

type program[A sdk.Action, O sdk.Element] struct {
	spec      sdk.Spec
	masked    bool
	tells     bool
	turns     bool // the environment says who acts
	takes     bool // it takes reset parameters
	respawns  bool // its agents may be back at once
	begins    bool // it tells numbers of an episode that begins
	shows     hostabi.RenderMode
	dict      bool // there are several observations
	composite bool // there are several actions
	make      func(*sdk.Spec, *sdk.Config, int) (sdk.Batch[A, O], error)
}

// resolve returns the spec for a configuration.
func (p *program[A, O]) resolve(c *sdk.Config) (sdk.Spec, error) {
	spec := p.spec
	if spec.Describe != nil {
		spec.Describe(c, &spec)
	}
	if p.composite != (len(spec.Actions) > 0) {
		return spec, errors.New("actions: ServeComposite and ServeCompositeBatch take the spec's Actions, the others its Action")
	}
	for _, space := range p.actions(&spec) {
		if err := checkSpace("action", space); err != nil {
			return spec, err
		}
	}
	if p.dict != (len(spec.Observations) > 0) {
		return spec, errors.New("observations: Serve and ServeBatch take the spec's Obs, the others its Observations")
	}
	if len(spec.Figures) > 0 && !p.tells {
		return spec, errors.New("figures: the environment has no method Tell, see sdk.Teller")
	}
	if params := &spec.Params; len(params.Shape) > 0 && (!p.takes || params.Choices() > 0) {
		return spec, errors.New("params: want numbers, and an environment with a method SetParams, see sdk.ParamTaker")
	}
	if err := checkSpace("params", spec.Params); err != nil {
		return spec, err
	}
	if spec.Agents < 0 || spec.Agents > hostabi.MaxAgents {
		return spec, errors.New("agents: " + strconv.Itoa(spec.Agents) + " of them, want 0 to " + strconv.Itoa(hostabi.MaxAgents))
	}
	spec.Agents = max(spec.Agents, 1)
	if len(spec.ResetInfos) > 0 && !p.begins {
		return spec, errors.New("reset infos: the environment has no method TellReset, see sdk.ResetTeller")
	}
	if n := len(spec.AgentNames); n > 0 && (n != spec.Agents || n == 1) {
		return spec, errors.New("agent names: " + strconv.Itoa(n) + " of them, want one for each of several agents")
	}
	if p.shows&hostabi.RenderRGB != 0 && !drawable(&spec) {
		return spec, errors.New("picture: an environment with a method Draw has PictureWidth and PictureHeight of 1 to " + strconv.Itoa(maxPicture))
	}
	switch {
	case !spec.Respawn:
	case !p.respawns:
		return spec, errors.New("respawn: the environment has no method SetLast, see sdk.Respawner")
	case spec.Agents < 2:
		return spec, errors.New("respawn: it is for several agents, of one the environment's own episode ends")
	case spec.Apart:
		return spec, errors.New("apart and respawn exclude each other: an agent whose episode has ended is out, or back at once")
	}
	if p.perAgent(&spec) && spec.Discount {
		return spec, errors.New("discount: there is none of agents, leave it to the learner's gamma")
	}
	for i := range p.observations(&spec) {
		if err := checkSpace("observation", p.observations(&spec)[i]); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// maxPicture bounds each side of a picture.
const maxPicture = 1 << 14

func drawable(s *sdk.Spec) bool {
	return min(s.PictureWidth, s.PictureHeight) > 0 && max(s.PictureWidth, s.PictureHeight) <= maxPicture
}

// showsOf says how environments of a type show themselves.
func showsOf[E any]() (modes hostabi.RenderMode) {
	if _, ok := any(*new(E)).(sdk.Drawer); ok {
		modes = hostabi.RenderRGB
	}
	if _, ok := any(*new(E)).(stringer); ok {
		modes |= hostabi.RenderText
	}
	return modes
}

// batchShows says how the environments of a batch show themselves.
func batchShows[B any]() hostabi.RenderMode {
	if _, ok := any(*new(B)).(sdk.BatchDrawer); ok {
		return hostabi.RenderRGB
	}
	return 0
}

// dynamic says whether the agents do not always act.
func (p *program[A, O]) dynamic(spec *sdk.Spec) bool { return p.turns || spec.Apart }

// perAgent says whether tensors have a row for each agent.
func (p *program[A, O]) perAgent(spec *sdk.Spec) bool { return spec.Agents > 1 || p.dynamic(spec) }

// actions returns the spaces of all actions.
func (p *program[A, O]) actions(spec *sdk.Spec) []sdk.Space {
	if p.composite {
		return spec.Actions
	}
	return []sdk.Space{spec.Action}
}

// observations returns the spaces of all observations.
func (p *program[A, O]) observations(spec *sdk.Spec) []sdk.Space {
	if p.dict {
		return spec.Observations
	}
	return []sdk.Space{spec.Obs}
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

// tensors returns the table of tensors in the order of their bindings.
func (p *program[A, O]) tensors(spec *sdk.Spec) []described {
	const at, at1, once = hostabi.TensorAtT, hostabi.TensorAtT1, hostabi.TensorNoTime
	flag := sdk.Space{High: 1}
	var now, last []described
	for i, space := range p.observations(spec) {
		dtype := dtypeOf[O]()
		if p.dict {
			dtype = [...]hostabi.DType{sdk.Float32: hostabi.F32, sdk.Uint8: hostabi.U8, sdk.Int32: hostabi.I32, sdk.Int8: hostabi.I8,
				sdk.Int16: hostabi.I16, sdk.Int64: hostabi.I64}[space.Type]
		}
		now = append(now, tensorOf(hostabi.RoleObservation, dtype, at1, space))
		last = append(last, tensorOf(hostabi.RoleFinalObservation, dtype, once, space))
		now[i].Index, last[i].Index, last[i].Pair = uint16(i), uint16(i), uint16(i)
	}
	actions, masks := p.acting(spec)
	list := []described{
		actions[0],
		now[0],
		tensorOf(hostabi.RoleReward, hostabi.F32, at, sdk.Space{}),
		tensorOf(hostabi.RoleTerminated, hostabi.U8, at, flag),
		tensorOf(hostabi.RoleTruncated, hostabi.U8, at, flag),
		last[0],
	}
	if len(masks) > 0 && masks[0].Pair == 0 {
		list, masks = append(list, masks[0]), masks[1:]
	}
	if spec.Discount {
		list = append(list, tensorOf(hostabi.RoleDiscount, hostabi.F32, at, flag))
	}
	if p.dynamic(spec) {
		list = append(list, tensorOf(hostabi.RoleActive, hostabi.U8, at1, flag))
	}
	for i, figure := range spec.Figures {
		d := tensorOf(hostabi.RoleInfo, hostabi.F32, at|hostabi.TensorOptional|gathered(figure), sdk.Space{Name: figure.Name})
		d.Index = uint16(i)
		list = append(list, d)
	}
	for i := 1; i < len(now); i++ {
		list = append(list, now[i], last[i])
	}
	list = append(append(list, actions[1:]...), masks...)
	if len(spec.Params.Shape) > 0 {
		list = append(list, tensorOf(hostabi.RoleResetParam, hostabi.F32, once|hostabi.TensorOptional, spec.Params))
	}
	for i, name := range spec.ResetInfos {
		d := tensorOf(hostabi.RoleResetInfo, hostabi.F32, at1|hostabi.TensorOptional, sdk.Space{Name: name})
		d.Index = uint16(i)
		list = append(list, d)
	}
	if p.perAgent(spec) {
		giveAgents(list, spec)
	}
	return list
}

// acting returns the tensors of the actions, and the masks of the discrete ones.
func (p *program[A, O]) acting(spec *sdk.Spec) (actions, masks []described) {
	for i, space := range p.actions(spec) {
		dtype, choices := dtypeOf[A](), space.Choices()
		if p.composite {
			dtype = hostabi.I32
			if choices == 0 {
				dtype = hostabi.F32
			}
		}
		action := tensorOf(hostabi.RoleAction, dtype, hostabi.TensorAtT, space)
		action.Index = uint16(i)
		actions = append(actions, action)
		if p.masked && choices > 0 {
			mask := tensorOf(hostabi.RoleActionMask, hostabi.U8, hostabi.TensorAtT1, sdk.Space{Shape: []int{choices}, High: 1, Name: space.Name})
			mask.Index, mask.Pair = uint16(len(masks)), uint16(i)
			masks = append(masks, mask)
		}
	}
	return actions, masks
}

// giveAgents gives each agent a row of the tensors that the environment has not for itself.
func giveAgents(list []described, spec *sdk.Spec) {
	for i := range list {
		switch d := &list[i]; {
		case d.Role == hostabi.RoleInfo, d.Role == hostabi.RoleResetParam, d.Role == hostabi.RoleResetInfo:
		case !spec.Apart && !spec.Respawn && (d.Role == hostabi.RoleTerminated || d.Role == hostabi.RoleTruncated):
		default:
			d.Flags |= hostabi.TensorPerAgent
			d.agents = spec.Agents
		}
	}
}

// gathered returns the flags of how the figures of an episode become one.
func gathered(f sdk.Figure) hostabi.TensorFlags {
	flags := [...]hostabi.TensorFlags{sdk.Sum: hostabi.TensorSum, sdk.Mean: hostabi.TensorMean, sdk.Max: hostabi.TensorMax, sdk.Min: hostabi.TensorMin}[f.Gather]
	if f.Episode {
		flags |= hostabi.TensorEpisode
	}
	return flags
}

// tensorOf describes a tensor.
func tensorOf(role hostabi.Role, dtype hostabi.DType, flags hostabi.TensorFlags, s sdk.Space) described {
	d := described{space: s, agents: 1, TensorDesc: hostabi.TensorDesc{Role: role, DType: dtype, Flags: flags, Rank: uint8(len(s.Shape)),
		Low: s.Low, High: s.High, N: uint32(s.N), Start: int32(s.Start), Scale: s.Scale}}
	for i, dim := range s.Shape {
		d.Shape[i] = uint32(dim)
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

// described is a tensor with the space that has the name and the numbers that its record refers to.
type described struct {
	hostabi.TensorDesc
	space  sdk.Space
	agents int // rows of an environment at one time
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
		Args:            uint32(len(spec.Args)),
		MaxEnvs:         uint32(spec.MaxEnvs),
		EpisodeLimit:    uint32(spec.EpisodeLimit),
		Autoreset:       hostabi.NextStep | hostabi.SameStep | hostabi.Disabled,
		RewardThreshold: float32(math.NaN()),
		DT:              spec.DT,
		StateVersion:    spec.StateVersion,
	}
	if head.RenderModes = p.shows; p.shows&hostabi.RenderRGB != 0 {
		head.RenderWidth, head.RenderHeight, head.RenderFPS = uint32(spec.PictureWidth), uint32(spec.PictureHeight), spec.PictureFPS
	}
	if spec.PreferSoA {
		head.Caps |= hostabi.CapPreferSoA
	}
	names := stringTable{0}
	name, version, _ := strings.Cut(spec.Name, "@")
	head.Name, head.Version, head.Keys = names.add(name), names.add(version), names.add(spec.Keys)
	var groups []hostabi.GroupDesc
	if spec.Agents > 1 {
		groups = append(groups, hostabi.GroupDesc{Name: names.add("agents"), Agents: uint32(spec.Agents), AgentNames: names.add(strings.Join(spec.AgentNames, "\n"))})
	}
	if p.perAgent(&spec) {
		head.Groups, head.Needs, head.Autoreset = uint32(len(groups)), hostabi.FeatureAgents, hostabi.SameStep
	}
	if p.dynamic(&spec) {
		head.Flags = hostabi.SpecDynamicAgents
	}
	args := describeArgs(spec.Args, &names)
	records := hostabi.SpecBytes + len(groups)*hostabi.GroupBytes + len(tensors)*hostabi.TensorBytes + len(args)*hostabi.ArgBytes
	var values []byte
	for i := range tensors {
		tensors[i].Path = names.add(tensors[i].space.Name)
		at := records + len(values)
		if values = tensors[i].appendValues(values); records+len(values) > at {
			tensors[i].Values = uint32(at)
		}
	}
	head.StringsAt, head.StringsLen = uint32(records+len(values)), uint32(len(names))
	data := append([]byte(nil), bytesOf(&head)...)
	for i := range groups {
		data = append(data, bytesOf(&groups[i])...)
	}
	for i := range tensors {
		data = append(data, bytesOf(&tensors[i].TensorDesc)...)
	}
	for i := range args {
		data = append(data, bytesOf(&args[i])...)
	}
	return append(append(data, values...), names...), nil
}

// describeArgs returns the records of arguments, whose texts it adds to a string table.
func describeArgs(list []sdk.Arg, names *stringTable) (args []hostabi.ArgDesc) {
	kinds := [...]hostabi.ArgType{sdk.TextArg: hostabi.ArgText, sdk.IntegerArg: hostabi.ArgInteger, sdk.NumberArg: hostabi.ArgNumber,
		sdk.BoolArg: hostabi.ArgBool, sdk.ChoiceArg: hostabi.ArgChoice}
	for _, a := range list {
		d := hostabi.ArgDesc{Name: names.add(a.Name), Doc: names.add(a.Doc), Kind: kinds[a.Kind], Min: a.Min, Max: a.Max, Value: names.add(a.Default),
			Choices: names.add(strings.Join(a.Choices, "\n"))}
		if a.AffectsSpaces {
			d.Flags = hostabi.ArgAffectsSpaces
		}
		args = append(args, d)
	}
	return args
}

// stringTable is the string table of a description.
type stringTable []byte

// add returns the place of a string in the table.
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
	if p.perAgent(&spec) && mode != hostabi.SameStep {
		return nil, hostabi.StatusUnsupported, errors.New("environments with agents begin anew in the same step only")
	}
	row := 0
	for _, space := range p.actions(&spec) {
		row += max(space.Elems(), space.Choices())
	}
	for _, space := range p.observations(&spec) {
		row = max(row, space.Elems())
	}
	if n < 1 || n > math.MaxInt32/(8*row*spec.Agents) || (spec.MaxEnvs > 0 && n > spec.MaxEnvs) {
		return nil, hostabi.StatusArgument, errors.New(strconv.Itoa(n) + " environments are not possible")
	}
	envs, err := p.make(&spec, c, n)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		return nil, hostabi.StatusConfig, err
	}
	return newBatch[A, O](p.tensors(&spec), &spec, envs, n, mode), hostabi.StatusOK, nil
}
