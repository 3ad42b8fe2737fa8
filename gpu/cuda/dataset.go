package cuda

import (
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// dataset is a round's rows on the device: the one copy that a learner makes of them.
type dataset struct {
	staged
	*layout
	rows, envs, width int // width is the environments of a block

	control, blocks, valid, mean, scale section
	obs, stored                         section // stored has the states where chunks begin, then those after burn-in
	logProb, value                      section // of the samples: values are in the unit
	index, raw, mask                    []section
	columns                             []section // of each block in turn
	seen                                []seen    // of each block, where observations are read from blocks
	heads                               heads
	picks                               section

	enter   policy.Gather
	entry   *policy.Entry
	drawnAt []kernels.Address
	masksAt []kernels.Address
}

// seen is where the observations of a block come from: a place that the device reaches, or, where of is nil, the staged section.
type seen struct {
	from kernels.Address
	of   *mapping
}

// column is a column that targets are computed from.
type column struct {
	of   trajectory.Column
	size int // of an element
	more int // rows after the last step
	to   func(*kernels.Block) *kernels.Address
}

// reward is a place in the list for the column that a block is learned from.
const reward = 0

var columns = []column{
	reward: {trajectory.Reward, 4, 0, func(b *kernels.Block) *kernels.Address { return &b.Reward }},
	{trajectory.Value, 4, 1, func(b *kernels.Block) *kernels.Address { return &b.Value }},
	{trajectory.Bootstrap, 4, 0, func(b *kernels.Block) *kernels.Address { return &b.Bootstrap }},
	{trajectory.LogProb, 4, 0, func(b *kernels.Block) *kernels.Address { return &b.LogProb }},
	{trajectory.Discount, 4, 0, func(b *kernels.Block) *kernels.Address { return &b.Discount }},
	{trajectory.Terminated, 1, 0, func(b *kernels.Block) *kernels.Address { return &b.Terminated }},
	{trajectory.Truncated, 1, 0, func(b *kernels.Block) *kernels.Address { return &b.Truncated }},
	{trajectory.Valid, 1, 0, func(b *kernels.Block) *kernels.Address { return &b.Valid }},
	{trajectory.Active, 1, 0, func(b *kernels.Block) *kernels.Address { return &b.Active }},
}

// bytes returns a column of a block, nil where the block has none.
func (c *column) bytes(d *policy.Dataset, block int) []byte {
	b, of := &d.Blocks[block], c.of
	if of == trajectory.Reward && b.Schema.Has(trajectory.ShapedReward) {
		of = trajectory.ShapedReward
	}
	data := b.Bytes(of)
	if of == trajectory.Valid {
		data = d.Valid(block)
	}
	if data == nil {
		return nil
	}
	return data[:c.size*(b.Schema.Shape.Steps+c.more)*b.Schema.Rows()]
}

func newDataset(w *work, l *layout) dataset {
	n := len(l.actions)
	return dataset{staged: staged{work: w}, layout: l, entry: policy.NewEntry(&l.net, l.starts), index: make([]section, n), raw: make([]section, n),
		mask: make([]section, n), drawnAt: make([]kernels.Address, n), masksAt: make([]kernels.Address, n)}
}

// take takes the sections of a round.
func (d *dataset) take(r *ppo.Round) {
	of, s := r.Dataset, &r.Samples
	d.rows, d.envs, d.width = of.Rows(), of.Envs(), of.BlockEnvs()
	d.begin()
	d.control, d.blocks = d.section(sizeOf[kernels.Control]()), d.section(len(of.Blocks)*sizeOf[kernels.Block]())
	d.valid, d.mean, d.scale = d.section(4*len(s.Valid)), d.section(4*len(of.ObsMean)), d.section(4*len(of.ObsScale))
	d.heads.take(&d.staged, d.layout)
	d.picks = d.section((pickColumns + 2*len(d.actions)) * sizeOf[kernels.Pick]())
	d.logProb, d.value = d.section(4*d.rows), d.section(4*d.rows)
	for i := range d.actions {
		a := &s.Actions[i]
		d.index[i], d.raw[i], d.mask[i] = d.section(4*len(a.Index)), d.section(4*len(a.Raw)), d.section(len(a.Mask))
	}
	d.columns = d.columns[:0]
	for i := range of.Blocks {
		for k := range columns {
			d.columns = append(d.columns, d.section(len(columns[k].bytes(of, i))))
		}
	}
	d.stored = d.section(0)
	if d.net.Chunk > 0 {
		d.stored = d.section(4 * (d.kept*of.Chunks(&d.net) + len(of.Warm)))
	}
	switch {
	case d.net.Plain():
		d.obs = d.section(len(of.Blocks) * observed(of))
	case d.net.Pixels():
		d.obs = d.section(d.rows * d.elems)
	default:
		d.obs = d.section(4 * d.rows * d.row)
	}
	d.fit()
}

// observed is the size of a block's observations that are read where they lie.
func observed(d *policy.Dataset) int {
	l, _ := d.Blocks[0].Schema.Layout(trajectory.Obs)
	return d.Steps() * l.StrideT
}

// stage copies a round into the sections that were taken for it, but for the control, the heads and the picks.
func (d *dataset) stage(r *ppo.Round) {
	of, s := r.Dataset, &r.Samples
	copy(view[uint32](&d.staged, d.valid), s.Valid)
	copy(view[float32](&d.staged, d.mean), of.ObsMean)
	copy(view[float32](&d.staged, d.scale), of.ObsScale)
	copy(view[float32](&d.staged, d.logProb), s.LogProb)
	copy(view[float32](&d.staged, d.value), s.Value)
	for i := range d.actions {
		a := &s.Actions[i]
		copy(view[int32](&d.staged, d.index[i]), a.Index)
		copy(view[float32](&d.staged, d.raw[i]), a.Raw)
		copy(d.bytes(d.mask[i]), a.Mask)
	}
	for i := range of.Blocks {
		d.stageBlock(of, i)
	}
	if d.net.Chunk > 0 {
		stored := view[float32](&d.staged, d.stored)
		of.Stored(&d.net, stored)
		copy(stored[d.kept*of.Chunks(&d.net):], of.Warm)
	}
	if !d.net.Plain() {
		d.stageEntered(of, s.Rows())
	}
}

func (d *dataset) stageBlock(from *policy.Dataset, i int) {
	to := &view[kernels.Block](&d.staged, d.blocks)[i]
	*to = kernels.Block{Obs: d.address(d.obs)}
	for k := range columns {
		x := d.columns[i*len(columns)+k]
		if data := columns[k].bytes(from, i); data != nil {
			copy(d.bytes(x), data)
			*columns[k].to(to) = d.address(x)
		}
	}
	if d.net.Plain() {
		n := d.perBlock()
		obs := from.Blocks[i].Bytes(trajectory.Obs)[:n]
		lies, of := d.device.arenas.reach(d.device.Device, obs)
		if d.seen = append(d.seen, seen{lies, of}); of == nil {
			copy(d.bytes(d.obs)[i*n:], obs)
		}
		to.Obs += kernels.Address(i * n)
	}
}

// perBlock is how many bytes of observations a block has.
func (d *dataset) perBlock() int { return d.obs.bytes / (d.envs / d.width) }

// upload submits the copy of staged data to the device, and of the observations that lie in blocks within its reach.
func (d *dataset) upload() {
	if !slices.ContainsFunc(d.seen, func(s seen) bool { return s.of != nil }) {
		d.send(0)
		return
	}
	if d.err != nil {
		return
	}
	d.copy(d.memory.Address, d.host.Address, d.obs.at)
	for i, s := range d.seen {
		at, n := kernels.Address(d.obs.at+i*d.perBlock()), d.perBlock()
		if s.of == nil {
			s.from = d.host.Address + at
		}
		d.copy(d.memory.Address+at, s.from, n)
	}
}

// leave says that the device has made its copies.
func (d *dataset) leave() {
	for _, s := range d.seen {
		if s.of != nil {
			s.of.done()
		}
	}
	d.seen = d.seen[:0]
}

// stageEntered makes the rows that enter from stored observations.
func (d *dataset) stageEntered(of *policy.Dataset, rows []uint32) {
	d.enter.Open(&d.net, d.entry, of)
	defer d.enter.Close()
	if d.net.Pixels() {
		to, n := d.bytes(d.obs), d.elems
		for _, row := range rows {
			d.enter.Row(policy.EnteredRow{Bytes: to[int(row)*n:][:n]}, row)
		}
		return
	}
	to := view[float32](&d.staged, d.obs)
	for _, row := range rows {
		own := to[int(row)*d.row:][:d.row]
		clear(own)
		d.enter.Row(policy.EnteredRow{Numbers: own}, row)
	}
}

// describe says how rows of the dataset enter.
func (d *dataset) describe(a *kernels.Gather, of *policy.Dataset) {
	*a = kernels.Gather{Blocks: d.address(d.blocks), Row: int32(d.row), Envs: int32(d.envs), BlockEnvs: int32(d.envs)}
	switch {
	case d.net.Plain():
		l, _ := of.Blocks[0].Schema.Layout(trajectory.Obs)
		a.Width, a.BlockEnvs = int32(d.elems), int32(d.width)
		a.StepStride, a.EnvStride, a.ElemStride = int32(l.StrideT/4), int32(l.StrideEnv/4), int32(l.StrideElem/4)
		if d.net.NormalizeObs() {
			a.Mean, a.Scale = d.address(d.mean), d.address(d.scale)
		}
		return
	case d.net.Pixels():
		a.Width, a.Bytes, a.Factor = int32(d.elems), 1, d.net.PixelScale()
	default:
		a.Width = int32(d.row)
	}
	a.StepStride, a.EnvStride, a.ElemStride = a.Width*int32(d.envs), a.Width, 1
}

// gathered is the size of a row's observation as it is copied.
func (d *dataset) gathered() int {
	if d.net.Pixels() {
		return d.elems
	}
	return 4 * d.elems
}
