package kernels

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/hostabi"
)

// dataset is a dataset that a policy acted on, with its blocks in the kernels' memory.
type dataset struct {
	*rig
	*policy.Dataset
	samples ppo.Samples
	blocks  Address
}

func newDataset(t *testing.T, o policytest.Options) *dataset {
	params := policy.Init(&o.Network, 1)
	d := &dataset{rig: newRig(t), Dataset: policytest.Acted(t, cpu.New(), params, o)}
	if err := d.samples.Read(d.Dataset, &o.Network); err != nil {
		t.Fatal(err)
	}
	return d
}

// place puts the columns of the blocks.
func (d *dataset) place() {
	var blocks []Block
	for _, b := range d.Blocks {
		float := func(c trajectory.Column) Address { return put(d.rig, b.Float32(c)...) }
		bytes := func(c trajectory.Column) Address { return put(d.rig, b.Bytes(c)...) }
		n := Block{Reward: float(trajectory.Reward), Value: float(trajectory.Value), Bootstrap: float(trajectory.Bootstrap),
			LogProb: float(trajectory.LogProb), Terminated: bytes(trajectory.Terminated), Truncated: bytes(trajectory.Truncated), Valid: bytes(trajectory.Valid)}
		if b.Bytes(trajectory.Active) != nil {
			n.Active = bytes(trajectory.Active)
		}
		if b.Float32(trajectory.Discount) != nil {
			n.Discount = float(trajectory.Discount)
		}
		blocks = append(blocks, n)
	}
	d.blocks = put(d.rig, blocks...)
}

// targets are the arguments of the kernel.
func (d *dataset) targets(c *ppo.Config, control Address) Targets {
	return Targets{Blocks: d.blocks, Advantage: room[float32](d.rig, d.Rows()), Target: room[float32](d.rig, d.Rows()), Control: control,
		Gamma: c.Gamma, Lambda: c.GAELambda, RhoBar: c.RhoBar, CBar: c.CBar,
		Steps: int32(d.Steps()), Envs: int32(d.Envs()), BlockEnvs: int32(d.BlockEnvs())}
}

func mlp() policy.Network {
	return policy.MLP{Obs: 3, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}.Network()
}

func TestTargets_AreTheReferences(t *testing.T) {
	for _, o := range []policytest.Options{
		{Network: mlp(), Steps: 1, Envs: 1, Blocks: 1, Seed: 1},
		{Network: mlp(), Steps: 7, Envs: 5, Blocks: 3, InvalidEvery: 6, Seed: 2},
		{Network: mlp(), Steps: 4, Envs: 150, Blocks: 2, InvalidEvery: 9, Seed: 3},
	} {
		c := ppo.Defaults()
		d := newDataset(t, o)
		d.place()
		args := d.targets(&c, put(d.rig, control()))
		run(d.rig, TargetsKernel, Blocks(d.Envs()), args)
		var want ppo.Targets
		if err := want.GAE(d.Dataset, &c); err != nil {
			t.Fatal(err)
		}
		same(t, "advantages", get[float32](d.rig, args.Advantage, d.Rows()), want.Advantage)
		same(t, "returns", get[float32](d.rig, args.Target, d.Rows()), want.Return)

		// V-trace's ratios are exponentials of float64, which no two libraries round alike.
		logProb := d.floats(d.Rows())
		for i := range logProb {
			logProb[i] = 0.3*logProb[i] + d.samples.LogProb[i]
		}
		args.NewLogProb = put(d.rig, logProb...)
		run(d.rig, TargetsKernel, Blocks(d.Envs()), args)
		if err := want.VTrace(d.Dataset, &c, logProb); err != nil {
			t.Fatal(err)
		}
		near(t, "advantages of V-trace", get[float32](d.rig, args.Advantage, d.Rows()), want.Advantage)
		near(t, "returns of V-trace", get[float32](d.rig, args.Target, d.Rows()), want.Return)
		if d.Rows() == 105 {
			// Some columns are read where a row needs them.
			for _, b := range get[Block](d.rig, d.blocks, len(d.Blocks)) {
				d.forget(b.Bootstrap)
				d.forget(b.Reward)
				d.forget(b.LogProb)
				d.forget(b.Terminated)
				d.forget(b.Truncated)
			}
			d.forget(args.NewLogProb)
			d.forget(args.Control)
			runShort(d.rig, TargetsKernel, Blocks(d.Envs()), args, d.blocks)
		}
	}
}

// inTurns is a dataset of agents that act in some steps only, of environments with their own discounts.
func inTurns(t *testing.T, steps, envs, agents int) *dataset {
	n := mlp()
	spec := policytest.SpecOf(&n, false)
	spec.Groups = []hostabi.Group{{Name: "agents", Agents: agents}}
	spec.Tensors = append(slices.Clone(spec.Tensors), hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8},
		hostabi.Tensor{Role: hostabi.RoleDiscount, DType: hostabi.F32})
	for i := range spec.Tensors {
		spec.Tensors[i].Flags |= hostabi.TensorPerAgent
	}
	d := &dataset{rig: newRig(t), Dataset: &policy.Dataset{}}
	for range 2 {
		schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: steps, Envs: envs})
		if err != nil {
			t.Fatal(err)
		}
		b := trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}
		for _, c := range []trajectory.Column{trajectory.Reward, trajectory.Value, trajectory.Bootstrap, trajectory.LogProb} {
			copy(b.Float32(c), d.floats(len(b.Float32(c))))
		}
		for i := range b.Float32(trajectory.Discount) {
			b.Float32(trajectory.Discount)[i] = d.random.Float32()
		}
		for c, often := range map[trajectory.Column]int{trajectory.Terminated: 9, trajectory.Truncated: 8, trajectory.Valid: 2, trajectory.Active: 2} {
			for i := range b.Bytes(c) {
				once := byte(0)
				if c == trajectory.Valid || c == trajectory.Active {
					once = 1
				}
				b.Bytes(c)[i] = 1 - once
				if d.random.IntN(often) > 0 {
					b.Bytes(c)[i] = once
				}
			}
		}
		d.Blocks = append(d.Blocks, b)
	}
	return d
}

func TestTargets_FollowAgentsThatActInTurns(t *testing.T) {
	d := inTurns(t, 20, 3, 50)
	c := ppo.Defaults()
	d.place()
	args := d.targets(&c, put(d.rig, control()))
	run(d.rig, TargetsKernel, Blocks(d.Envs()), args)
	var want ppo.Targets
	if err := want.GAE(d.Dataset, &c); err != nil {
		t.Fatal(err)
	}
	if blocks := get[Block](d.rig, d.blocks, 2); blocks[1].Active == 0 || blocks[1].Discount == 0 {
		t.Fatalf("the blocks have no columns of turns and discounts: %+v", blocks)
	}
	same(t, "advantages", get[float32](d.rig, args.Advantage, d.Rows()), want.Advantage)
	same(t, "returns", get[float32](d.rig, args.Target, d.Rows()), want.Return)

	c.Discount, args.Multiply = ppo.DiscountMultiply, 1
	run(d.rig, TargetsKernel, Blocks(d.Envs()), args)
	replaced := slices.Clone(want.Advantage)
	if err := want.GAE(d.Dataset, &c); err != nil || slices.Equal(replaced, want.Advantage) {
		t.Fatalf("discounts that are multiplied change nothing, or fail: %v", err)
	}
	same(t, "advantages with multiplied discounts", get[float32](d.rig, args.Advantage, d.Rows()), want.Advantage)
	same(t, "returns with multiplied discounts", get[float32](d.rig, args.Target, d.Rows()), want.Return)

	nan := float32(math.NaN())
	at := slices.Index(d.Blocks[1].Bytes(trajectory.Valid), 1)
	for d.Blocks[1].Bytes(trajectory.Active)[at] == 0 || d.Blocks[1].Bytes(trajectory.Valid)[at] == 0 {
		at++
	}
	d.Blocks[1].Float32(trajectory.Discount)[at] = nan
	d.place()
	args = d.targets(&c, put(d.rig, control()))
	run(d.rig, TargetsKernel, Blocks(d.Envs()), args)
	if place := get[Control](d.rig, args.Control, 1)[0].FaultPlace; place%4 != DiscountColumn {
		t.Errorf("a discount that is not a number is told as %d of place %d", place%4, place/4)
	}
}

// near fails where numbers differ by more than their last bits.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range got {
		if diff := math.Abs(float64(got[i]) - float64(want[i])); !(diff <= 3e-7*(1e-3+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestTargets_NameTheRowThatTheReferenceNames(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	o := policytest.Options{Network: mlp(), Steps: 6, Envs: 5, Blocks: 3, Seed: 4}
	for column, spoil := range map[int]func(b trajectory.Trajectory, i int){
		RewardColumn: func(b trajectory.Trajectory, i int) { b.Float32(trajectory.Reward)[i] = nan },
		BootstrapColumn: func(b trajectory.Trajectory, i int) {
			b.Bytes(trajectory.Terminated)[i], b.Bytes(trajectory.Truncated)[i] = 0, 1
			b.Float32(trajectory.Bootstrap)[i] = inf
		},
		ValueColumn: func(b trajectory.Trajectory, i int) {
			b.Bytes(trajectory.Terminated)[i], b.Bytes(trajectory.Truncated)[i] = 0, 0
			b.Float32(trajectory.Value)[i+5] = nan
		},
	} {
		d := newDataset(t, o)
		for _, at := range [][2]int{{2, 3}, {1, 16}, {1, 18}, {1, 4}} {
			spoil(d.Blocks[at[0]], at[1])
		}
		d.place()
		c := ppo.Defaults()
		c.NormalizeReturns = true
		args := d.targets(&c, put(d.rig, control()))
		run(d.rig, TargetsKernel, Blocks(d.Envs()), args)
		var want ppo.Targets
		var row *policy.RowError
		if err := want.GAE(d.Dataset, &c); !errors.As(err, &row) {
			t.Fatal(err)
		}
		place := get[Control](d.rig, args.Control, 1)[0].FaultPlace
		block, rest := int(place/4)/30, int(place/4)%30
		step, env := 5-rest/5, block*5+rest%5
		if got := step*15 + env; got != row.Row || int(place%4) != column {
			t.Errorf("the first is row %d in column %d, want row %d of %v", got, place%4, row.Row, row)
		}
		// returns makes it a fault, and leaves all else as it is.
		returns := Returns{Target: room[float32](d.rig, 1), Value: room[float32](d.rig, 1), Valid: room[uint32](d.rig, 1), Control: args.Control, Count: 1, First: 1}
		run(d.rig, ReturnsKernel, driver.Dim{X: 1}, returns)
		if c := get[Control](d.rig, args.Control, 1)[0]; c.Fault != TargetFault {
			t.Errorf("fault %d, want %d", c.Fault, TargetFault)
		}
	}
}

func TestGather_CopiesAndNormalisesRows(t *testing.T) {
	r := newRig(t)
	steps, envs, blocks, width, row := 3, 4, 2, 5, 16
	for _, soa := range []bool{false, true} {
		args := Gather{Rows: 20, Row: int32(row), Width: int32(width), Envs: int32(envs * blocks), BlockEnvs: int32(envs),
			StepStride: int32(envs * width), EnvStride: int32(width), ElemStride: 1}
		if soa {
			args.EnvStride, args.ElemStride = 1, int32(envs)
		}
		var table []Block
		var columns [][]float32
		for range blocks {
			column := r.floats(steps * envs * width)
			column[1] = float32(math.NaN())
			columns, table = append(columns, column), append(table, Block{Obs: put(r, column...)})
		}
		mean, scale := r.floats(width), r.floats(width)
		scale[2] = 1e3
		order := make([]uint32, args.Rows)
		for i := range order {
			order[i] = uint32(r.random.IntN(steps * envs * blocks))
		}
		order[0], order[1], order[2] = uint32(steps*envs*blocks-1), uint32((steps*blocks-1)*envs-1), 0
		args.Blocks, args.Order, args.X = put(r, table...), put(r, order...), room[float32](r, len(order)*row)
		args.Mean, args.Scale = put(r, mean...), put(r, scale...)
		want := make([]float32, len(order)*row)
		for i, o := range order {
			step, env := int(o)/(envs*blocks), int(o)%(envs*blocks)
			from := columns[env/envs][step*int(args.StepStride)+env%envs*int(args.EnvStride):]
			policy.NormalizeRow(want[i*row:][:width], from, int(args.ElemStride), mean, scale)
		}
		run(r, GatherKernel, Blocks(len(want)), args)
		same(t, "rows", get[float32](r, args.X, len(want)), want)
		runShort(r, GatherKernel, Blocks(len(want)), args, args.Blocks)
	}
	pixels := make([]byte, 7*9)
	for i := range pixels {
		pixels[i] = byte(r.random.IntN(256))
	}
	args := Gather{Blocks: put(r, Block{Obs: put(r, pixels...)}), X: room[float32](r, 7*9), Rows: 7, Row: 9, Width: 9, Envs: 7, BlockEnvs: 7,
		StepStride: 63, EnvStride: 9, ElemStride: 1, Bytes: 1, Factor: 1.0 / 255}
	run(r, GatherKernel, Blocks(63), args)
	for i, got := range get[float32](r, args.X, 63) {
		if want := float32(pixels[i]) * args.Factor; got != want {
			t.Fatalf("pixel %d is %v, want %v", i, got, want)
		}
	}
}

func TestPicks_TakeColumnsOfAMinibatch(t *testing.T) {
	r := newRig(t)
	all, rows, ld := 50, 30, 33
	from, mask := r.floats(3*all), r.masks(all, []int{2, 3})
	order := make([]uint32, rows)
	for i := range order {
		order[i] = uint32(r.random.IntN(all))
	}
	order[0] = uint32(all - 1)
	picks := []Pick{{From: put(r, from...), To: room[float32](r, 2*ld+rows), Size: 3, Bytes: 4, Row: 1, Column: int32(ld)},
		{From: put(r, mask...), To: room[byte](r, 5*rows), Size: 5, Bytes: 1, Row: 5, Column: 1}}
	args := Picks{Picks: put(r, picks...), Order: put(r, order...), Rows: int32(rows)}
	run(r, PicksKernel, driver.Dim{X: 1, Y: 2}, args)
	want, legal := filled(2*ld+rows, poison), make([]byte, 5*rows)
	for i, o := range order {
		for e := range 3 {
			want[e*ld+i] = from[int(o)*3+e]
		}
		copy(legal[5*i:], mask[5*o:5*o+5])
	}
	same(t, "a column", get[float32](r, picks[0].To, len(want)), want)
	if got := get[byte](r, picks[1].To, len(legal)); !slices.Equal(got, legal) {
		t.Errorf("masks %v, want %v", got, legal)
	}
	runShort(r, PicksKernel, driver.Dim{X: 1, Y: 2}, args, args.Picks)
}

func TestAdvantages_AreNormalisedByTheirMinibatch(t *testing.T) {
	r := newRig(t)
	all := 3000
	advantage := r.floats(all)
	order := make([]uint32, all)
	for i, j := range r.random.Perm(all) {
		order[i] = uint32(j)
	}
	ends := []int32{1, 3, 1500, int32(all)}
	args := Advantages{Advantage: put(r, advantage...), Order: put(r, order...), Ends: put(r, ends...), Moments: room[float64](r, 2*len(ends))}
	run(r, AdvantagesKernel, driver.Dim{X: len(ends)}, args)
	moments := get[float64](r, args.Moments, 2*len(ends))
	lo := 0
	for i, end := range ends {
		var want []float32
		for _, row := range order[lo:end] {
			want = append(want, advantage[row])
		}
		before := slices.Clone(want)
		ppo.NormalizeAdvantage(want)
		for j, x := range before {
			got := float32((float64(x) - moments[2*i]) * moments[2*i+1])
			if math.Abs(float64(got-want[j])) > 1e-6*(1+math.Abs(float64(want[j]))) {
				t.Fatalf("advantage %d of minibatch %d is %v, want %v", j, i, got, want[j])
			}
		}
		lo = int(end)
	}
	runShort(r, AdvantagesKernel, driver.Dim{X: len(ends)}, args)
}

func TestReturns_AreCountedAndPutIntoTheUnit(t *testing.T) {
	for _, unit := range []ppo.Unit{ppo.Raw, {Mean: 3, Deviation: 2}, {}} {
		r := newRig(t)
		all, count := 2500, 2000
		target, value := r.floats(all), r.floats(all)
		var valid []uint32
		for _, row := range r.random.Perm(all)[:count] {
			valid = append(valid, uint32(row))
		}
		if !slices.Contains(valid, uint32(all-1)) {
			valid[0] = uint32(all - 1)
		}
		slices.Sort(valid)
		var stats ppo.Returns
		for _, row := range valid {
			stats.Add(float64(target[row]))
		}
		args := Returns{Target: put(r, target...), Value: put(r, value...), Valid: put(r, valid...), Control: put(r, control()), Mean: unit.Mean,
			Deviation: unit.Deviation, Count: int32(count), First: 1}
		run(r, ReturnsKernel, driver.Dim{X: 1}, args)
		want := ppo.Targets{Return: slices.Clone(target)}
		for _, row := range valid {
			if unit != ppo.Raw {
				want.Return[row] = unit.Normal(target[row])
			}
		}
		same(t, "returns", get[float32](r, args.Target, all), want.Return)
		c := get[Control](r, args.Control, 1)[0]
		close := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-10*(1+math.Abs(want)) {
				t.Errorf("%s is %v, want %v", what, got, want)
			}
		}
		close("mean", c.ReturnsMean, stats.Mean)
		close("sum of squared deviations", c.ReturnsM2, stats.M2)
		close("explained variance", c.Explained, want.ExplainedVariance(&ppo.Samples{Value: value, Valid: valid}))
		args.First, args.Control = 0, put(r, control())
		run(r, ReturnsKernel, driver.Dim{X: 1}, args)
		if c := get[Control](r, args.Control, 1)[0]; c != control() {
			t.Errorf("later targets change the statistics: %+v", c)
		}
		if unit == ppo.Raw {
			args.First = 1
			runShort(r, ReturnsKernel, driver.Dim{X: 1}, args)
		}
	}
}
