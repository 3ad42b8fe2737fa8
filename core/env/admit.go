package env

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// CodeMany is the code of the error that a batch has more environments than the description allows.
const CodeMany = "E094"

// maxBatch bounds the environments of one batch.
const maxBatch = 1 << 20

// Check returns an error unless environments of that spec can be made as the options say, shared evenly by so many
// instances: 1, or the number of processes. The error wraps ErrUnsupported. Every Plugin calls it in NewEnv; runtimes
// check their own limits themselves.
func (o *Options) Check(spec *hostabi.EnvSpec, instances int) error {
	if o.Envs < 1 || o.Envs > maxBatch {
		return unsupported("%d environments, want 1 to %d", o.Envs, maxBatch)
	}
	instances = max(instances, 1)
	if each := (o.Envs + instances - 1) / instances; spec.MaxEnvs > 0 && each > spec.MaxEnvs {
		where := ""
		if instances > 1 {
			where = " in each process"
		}
		return &table.Error{Code: CodeMany, Place: o.Name, Reason: fmt.Sprintf("%d environments%s, %s takes 1 to %d", each, where, spec.Name, min(spec.MaxEnvs, maxBatch)),
			Help: "give it fewer (envs), or raise max_envs of its description", Err: ErrUnsupported}
	}
	if o.Autoreset&spec.Autoreset == 0 || o.Autoreset&(o.Autoreset-1) != 0 {
		return unsupported("autoreset %v, %s offers modes %#x", o.Autoreset, spec.Name, uint32(spec.Autoreset))
	}
	return nil
}

// CheckBlock returns an error unless environments of that spec and these options can step into a block that code
// outside this Go process writes: a guest, or another process. The error wraps ErrUnsupported. Such an Env calls it in
// Bind.
func (o *Options) CheckBlock(spec *hostabi.EnvSpec, b *Block) error {
	switch s := b.Schema; {
	case s == nil:
		return o.refuseBlock(b, "has no schema")
	case b.FD < 0:
		return o.refuseBlock(b, "is ordinary memory, which cannot be mapped a second time; take it from an arena")
	case s.Shape.Envs != o.Envs:
		return o.refuseBlock(b, "has room for %d environments, this batch has %d", s.Shape.Envs, o.Envs)
	case b.Offset < 0:
		return o.refuseBlock(b, "is at offset %d", b.Offset)
	case !slices.EqualFunc(s.Spec.Tensors, spec.Tensors, func(a, b hostabi.Tensor) bool { return a.Equal(&b) }):
		return o.refuseBlock(b, "is laid out for another environment (%s)", s.Spec.Name)
	}
	return nil
}

func (o *Options) refuseBlock(b *Block, format string, args ...any) error {
	return unsupported("%s: block %d %s", o.Name, b.Index, fmt.Sprintf(format, args...))
}

// CheckReset returns an error unless Reset can be called with these arguments while a block of so many rows is
// bound; 0 means none. The error wraps ErrUnsupported.
func (o *Options) CheckReset(rows, t int, mask []uint8, seeds []uint64) error {
	if rows > 0 && t >= 0 && t <= rows && (mask == nil || len(mask) == o.Envs) && (seeds == nil || len(seeds) == o.Envs) {
		return nil
	}
	return unsupported("%s: reset at row %d of %d with %d masks and %d seeds for %d environments",
		o.Name, t, rows, len(mask), len(seeds), o.Envs)
}

// CheckStep is the same for Step. It is small enough to be inlined.
func (o *Options) CheckStep(rows, t int) error {
	if uint(t) < uint(rows) {
		return nil
	}
	return o.badStep(rows, t)
}

//go:noinline
func (o *Options) badStep(rows, t int) error {
	return unsupported("%s: step at row %d of %d", o.Name, t, rows)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
