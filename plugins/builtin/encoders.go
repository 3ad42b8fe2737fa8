package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// EncoderTable is a [policy.NAME.encoder.PATTERN] table: how inputs whose paths match the pattern enter. A missing key has
// the default for the tensor.
type EncoderTable struct {
	Kind       string `toml:"kind" doc:"How inputs whose path matches the pattern enter." range:"flat, mlp, onehot, embed, nature_cnn, impala" default:"by the tensor"`
	Hidden     []int  `toml:"hidden" doc:"Widths of the layers of kind mlp." default:"by the kind"`
	Activation string `toml:"activation" doc:"Activation of those layers." range:"relu, tanh, elu, gelu, silu" default:"net.activation"`
	Dim        int    `toml:"dim" doc:"Width of an embedding." default:"by the tensor"`
	Norm       string `toml:"norm" doc:"Normalisation of the input." range:"none, running, scale, onehot" default:"by the tensor"`
	Stack      int    `toml:"stack" doc:"Newest frames that enter together." range:"1 or more" default:"frame_stack"`
}

// Bounds for a Discrete tensor's default: one-hot up to so many values, an embedding up to so many.
const (
	mostOneHot = 64
	mostValues = 1 << 14
)

// Words of encoders that are no policy.EncoderKind and no policy.Norm.
const (
	kindOneHot = "onehot"
	normNone   = "none"
)

var (
	encoderKinds = []string{string(policy.EncodeFlat), string(policy.EncodeMLP), kindOneHot, string(policy.EncodeEmbed), string(policy.EncodeNature), string(policy.EncodeImpala)}
	norms        = []string{normNone, string(policy.Running), string(policy.Scaled), string(policy.OneHot)}
	lastInputs   = []string{string(policy.LastAction), string(policy.LastExecuted), string(policy.LastReward)}
)

// How the last reward enters. Files that earlier versions have written out have none of these words: it was rawReward.
const (
	runningReward = "running" // the shaped reward, by running statistics
	plainReward   = "plain"   // the shaped reward, as it is
	rawReward     = "raw"     // the environment's own, as it is
)

// expandLastReward fills in how the last reward enters, and checks the given settings.
func (t *PolicyTable) expandLastReward(bad func(key, reason, help string)) {
	const key = string(policy.LastReward)
	switch enters := slices.Contains(t.Inputs, key); {
	case t.LastReward == nil && !enters:
	case t.LastReward == nil:
		way := plainReward
		if t.NormalizeObs {
			way = runningReward
		}
		t.LastReward = &way
	case !enters:
		bad(key, "has no effect: it does not enter", `leave it out, or add inputs = ["last_reward"]`)
	case !slices.Contains([]string{runningReward, plainReward, rawReward}, *t.LastReward):
		bad(key, fmt.Sprintf("is %q", *t.LastReward), "use running, plain or raw")
	}
}

// encoderKey is the key of an encoder's table, or of one of its keys.
func encoderKey(pattern, key string) string {
	if key == "" {
		return "encoder." + pattern
	}
	return "encoder." + pattern + "." + key
}

// Reasons against stacks together with a state.
const (
	keepsState = "is given, and a layer of net keeps a state"
	oneOfThem  = "leave one of them out: a layer with a state sees one frame after the other"
)

// checkEncoders makes the checks that need no environment.
func (t *PolicyTable) checkEncoders(bad func(key, reason, help string)) {
	for _, name := range t.Inputs {
		if !slices.Contains(lastInputs, name) {
			bad("inputs", fmt.Sprintf("has %q", name), "what can enter besides observations: "+strings.Join(lastInputs, ", "))
		}
	}
	t.checkCriticInputs(bad)
	frames := fmt.Sprintf("use 1 to %d frames", policy.MaxStack)
	if n := t.FrameStack; n != nil && (*n < 1 || *n > policy.MaxStack) {
		bad("frame_stack", fmt.Sprintf("is %d", *n), frames)
	} else if n != nil && *n > 1 && t.Net.Chunk != nil {
		bad("frame_stack", keepsState, oneOfThem)
	}
	for _, pattern := range slices.Sorted(maps.Keys(t.Encoder)) {
		e := t.Encoder[pattern]
		oneOf := func(key, value string, known []string) {
			if value != "" && !slices.Contains(known, value) {
				bad(encoderKey(pattern, key), fmt.Sprintf("is %q", value), "use one of: "+strings.Join(known, ", "))
			}
		}
		oneOf("kind", e.Kind, encoderKinds)
		oneOf("norm", e.Norm, norms)
		oneOf("activation", e.Activation, activations)
		if e.Stack < 0 || e.Stack > policy.MaxStack {
			bad(encoderKey(pattern, "stack"), fmt.Sprintf("is %d", e.Stack), frames)
		} else if e.Stack > 1 && t.Net.Chunk != nil {
			bad(encoderKey(pattern, "stack"), keepsState, oneOfThem)
		}
		if e.Dim < 0 || e.Dim > 1<<14 {
			bad(encoderKey(pattern, "dim"), fmt.Sprintf("is %d", e.Dim), "use 1 to 16384")
		}
		if kind := policy.EncoderKind(e.Kind); len(e.Hidden) > 0 && kind != policy.EncodeMLP && !kind.Pictures() {
			bad(encoderKey(pattern, "hidden"), "is for other kinds", `add kind = "mlp", "nature_cnn" or "impala"`)
		}
		checkWidths(encoderKey(pattern, "hidden"), e.Hidden, bad)
		if t.Net.Kind == kindNodes && (e.Kind != "" || len(e.Hidden) > 0 || e.Activation != "" || e.Dim != 0) {
			bad(encoderKey(pattern, ""), "has layers, and what reads the input is said by net", `leave only norm and stack here, or use net.kind = "mlp"`)
		}
	}
}

// maxWidth is the most elements that a layer has.
const maxWidth = 1 << 14

// checkWidths checks the widths of layers.
func checkWidths(key string, hidden []int, bad func(key, reason, help string)) {
	for _, width := range hidden {
		if width < 1 || width > maxWidth {
			bad(key, fmt.Sprintf("has a layer of width %d", width), fmt.Sprintf("use 1 to %d", maxWidth))
			break
		}
	}
}

// matches reports whether a path matches a pattern, in which a star matches any characters.
func matches(pattern, path string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == path
	}
	rest, ok := strings.CutPrefix(path, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, last)
}

// entering is an input on its way into a description.
type entering struct {
	tensor hostabi.Tensor
	path   string
	from   policy.Source
}

// entering lists the inputs: the observations in the environment's order, then the table's further inputs.
func (t *PolicyTable) entering(env *hostabi.EnvSpec) (list []entering) {
	for i, tensor := range env.All(hostabi.RoleObservation) {
		list = append(list, entering{tensor: tensor, path: policy.ObsPath(env, i)})
	}
	for _, name := range t.Inputs {
		role := hostabi.RoleAction
		if name == string(policy.LastReward) {
			role = hostabi.RoleReward
		}
		for i, tensor := range env.All(role) {
			list = append(list, entering{tensor: tensor, path: policy.Numbered(name, i), from: policy.Source(name)})
		}
	}
	return list
}

// inputs makes the inputs of a policy for an environment, with their encoders.
func (t *PolicyTable) inputs(env *hostabi.EnvSpec) ([]policy.Input, []policy.Encoder, error) {
	all := t.entering(env)
	pattern, err := t.patterns(all)
	if err != nil {
		return nil, nil, err
	}
	var inputs []policy.Input
	var encoders []policy.Encoder
	for i := range all {
		x := &all[i]
		entry := t.Encoder[pattern[i]]
		if entry.Stack == 0 && x.from == "" && t.FrameStack != nil {
			entry.Stack = *t.FrameStack
		}
		in, e, reason, help := entry.encode(x, t)
		if reason != "" {
			key := "encoder"
			if pattern[i] != "" {
				key = encoderKey(pattern[i], "")
			}
			return nil, nil, &component.ConfigError{Code: codeInput, Key: key, Reason: fmt.Sprintf("is for %s, %s: %s", x.path, x.tensor.Space(), reason), Help: help}
		}
		inputs, encoders = append(inputs, in), append(encoders, e)
	}
	return inputs, encoders, nil
}

// patterns returns the pattern for each path, or "".
func (t *PolicyTable) patterns(all []entering) ([]string, error) {
	of := make([]string, len(all))
	var paths []string
	for _, x := range all {
		paths = append(paths, x.path)
	}
	for _, pattern := range slices.Sorted(maps.Keys(t.Encoder)) {
		found := false
		for i, path := range paths {
			if !matches(pattern, path) {
				continue
			}
			if of[i] != "" {
				return nil, &component.ConfigError{Code: codeInput, Key: encoderKey(pattern, ""),
					Reason: fmt.Sprintf("is a second encoder for %s, which %q matches too", path, of[i]), Help: "let one pattern match a path"}
			}
			of[i], found = pattern, true
		}
		if !found {
			return nil, &component.ConfigError{Code: codeInput, Key: encoderKey(pattern, ""), Reason: "matches nothing that enters the policy",
				Help: "what enters: " + strings.Join(paths, ", ")}
		}
	}
	return of, nil
}

// encode makes the input of a tensor, and its encoder, or returns an error in its table.
func (e EncoderTable) encode(x *entering, of *PolicyTable) (in policy.Input, encoder policy.Encoder, reason, help string) {
	t := &x.tensor
	encoder = e.encoder(t)
	in = policy.Input{Path: x.path, From: x.from, Shape: []int{t.Elems(hostabi.MaxTensorElems)}}
	if encoder.Kind.Pictures() {
		in.Shape, in.CHW = pictureOf(t), t.Flags&hostabi.TensorImageCHW != 0
	}
	if t.DType != hostabi.F32 {
		in.DType = t.DType.String()
	}
	if e.Stack > 1 {
		in.Stack = e.Stack
	}
	in.Norm = e.norm(x, &encoder, of)
	in.Learned = x.from == policy.LastReward && *of.LastReward != rawReward
	switch {
	case in.Shape == nil:
		return in, encoder, "a tensor that is no picture", "use flat or mlp, or leave the key kind out"
	case (e.Kind == kindOneHot || e.Kind == string(policy.EncodeEmbed) || in.Norm == policy.OneHot) && !t.Discrete():
		return in, encoder, "a tensor of numbers has no values to choose from", "use flat or mlp, or leave the key kind out"
	case in.Norm == policy.OneHot && t.Choices() > mostValues:
		return in, encoder, fmt.Sprintf("more than %d values", mostValues), `use norm = "none"`
	case x.from != "" && in.Stack > 1:
		return in, encoder, "what was last is one frame", "leave stack out"
	case x.from != "" && x.from != policy.LastReward && in.Norm == policy.Running:
		return in, encoder, "a last action has no statistics", "leave norm out"
	}
	switch in.Norm {
	case policy.OneHot:
		in.Start = int(t.Start)
		in.Choices = choicesOf(t)
	case policy.Scaled:
		in.Scale = scaleOf(t)
	}
	return in, encoder, "", ""
}

// scaleOf returns the factor that brings a tensor's elements to 1 at most: its scale or, where it has none, from its
// bounds. Bytes without bounds go up to 255.
func scaleOf(t *hostabi.Tensor) float32 {
	most := t.High
	if t.DType == hostabi.U8 && (t.Low == t.High || t.Flags&hostabi.TensorNoHigh != 0) {
		most = 255
	}
	switch {
	case t.Scale != 0:
		return t.Scale
	case most > 1:
		return 1 / most
	}
	return 1
}

// pictureOf returns the shape of a tensor that can be a picture: height, width and channels, in the tensor's order; nil for others.
func pictureOf(t *hostabi.Tensor) (shape []int) {
	if t.Discrete() || t.Rank != 2 && t.Rank != 3 {
		return nil
	}
	shape = axesOf(t)
	if t.Rank == 2 {
		shape = append(shape, 1)
	}
	return shape
}

// axesOf returns the shape of a tensor.
func axesOf(t *hostabi.Tensor) (shape []int) {
	for _, n := range t.Shape[:t.Rank] {
		shape = append(shape, int(n))
	}
	return shape
}

// choicesOf lists the numbers of values of the elements, or a single number that all share.
func choicesOf(t *hostabi.Tensor) (list []int) {
	for _, n := range t.Counts {
		list = append(list, int(n))
	}
	if len(list) == 0 {
		return []int{int(t.N)}
	}
	return list
}

// encoder is the table's, or the tensor's default.
func (e EncoderTable) encoder(t *hostabi.Tensor) policy.Encoder {
	encoder := policy.Encoder{Kind: policy.EncoderKind(e.Kind), Hidden: e.Hidden, Activation: policy.Activation(e.Activation), Dim: e.Dim}
	switch {
	case e.Kind == kindOneHot:
		encoder.Kind = policy.EncodeFlat
	case e.Kind == "" && e.Norm == "" && t.Discrete() && t.Choices() > mostOneHot && t.Role == hostabi.RoleObservation:
		encoder.Kind = policy.EncodeEmbed
	case e.Kind == "" && fitsNature(t):
		encoder.Kind = policy.EncodeNature
	case e.Kind == "":
		encoder.Kind = policy.EncodeFlat
	}
	if encoder.Kind == policy.EncodeEmbed && encoder.Dim == 0 {
		encoder.Dim = 32
	}
	if encoder.Kind == policy.EncodeMLP && len(encoder.Hidden) == 0 {
		encoder.Hidden = []int{64}
	}
	if encoder.Kind.Pictures() && len(encoder.Hidden) == 0 {
		encoder.Hidden = []int{imageKinds[policy.Kind(encoder.Kind)]}
	}
	if encoder.Activation == "" {
		encoder.Activation = policy.Tanh
		if encoder.Kind.Pictures() {
			encoder.Activation = policy.ReLU
		}
	}
	return encoder
}

// fitsNature reports whether a tensor is a picture, large enough for nature_cnn.
func fitsNature(t *hostabi.Tensor) bool {
	const least = 36
	switch {
	case t.Flags&hostabi.TensorImageHWC != 0:
		return t.Shape[0] >= least && t.Shape[1] >= least
	case t.Flags&hostabi.TensorImageCHW != 0:
		return t.Shape[1] >= least && t.Shape[2] >= least
	}
	return false
}

// norm is the table's, or the tensor's default.
func (e EncoderTable) norm(x *entering, encoder *policy.Encoder, of *PolicyTable) policy.Norm {
	t := &x.tensor
	picture := t.Flags&(hostabi.TensorImageHWC|hostabi.TensorImageCHW) != 0
	switch {
	case e.Norm == normNone && encoder.Kind != policy.EncodeEmbed:
		return ""
	case e.Norm != "" && e.Norm != normNone:
		return policy.Norm(e.Norm)
	case e.Kind == kindOneHot || encoder.Kind == policy.EncodeEmbed || t.Discrete():
		return policy.OneHot
	case t.DType == hostabi.U8 && (picture || t.Scale != 0) || t.DType == hostabi.U8 && t.High == 255 && t.Rank > 1:
		return policy.Scaled
	case of.NormalizeObs && x.from == "", x.from == policy.LastReward && *of.LastReward == runningReward:
		return policy.Running
	}
	return ""
}

// checkCriticInputs makes the checks of the value's own inputs that need no environment.
func (t *PolicyTable) checkCriticInputs(bad func(key, reason, help string)) {
	switch {
	case len(t.CriticInputs) == 0:
	case t.Net.Kind == kindNodes:
		bad("critic_inputs", "is given for a network of nodes or of one picture", `leave it out and let nodes of critic. read them, or use net.kind = "mlp" with an encoder for each path`)
	case t.ShareTrunk != nil && *t.ShareTrunk:
		bad("critic_inputs", "is given, and policy and value share a trunk", "use share_trunk = false")
	case t.Net.Core != nil:
		bad("critic_inputs", "is given next to a core", "leave one of them out: the state of a core belongs to policy and value")
	}
}

// criticOnly says by input which the value alone reads; nil where there is none.
func (t *PolicyTable) criticOnly(inputs []policy.Input) ([]bool, error) {
	if len(t.CriticInputs) == 0 {
		return nil, nil
	}
	wrong := func(reason string) error {
		var paths []string
		for i := range inputs {
			paths = append(paths, inputs[i].Path)
		}
		return &component.ConfigError{Code: codeInput, Key: "critic_inputs", Reason: reason, Help: "what enters: " + strings.Join(paths, ", ")}
	}
	only := make([]bool, len(inputs))
	for _, pattern := range t.CriticInputs {
		found := false
		for i := range inputs {
			if matches(pattern, inputs[i].Path) {
				only[i], found = true, true
			}
		}
		if !found {
			return nil, wrong(fmt.Sprintf("has %q, which matches nothing that enters", pattern))
		}
	}
	if !slices.Contains(only, false) {
		return nil, wrong("leaves the policy nothing to read")
	}
	return only, nil
}
