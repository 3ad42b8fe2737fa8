package kernels

import (
	"structs"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// Address is where the device finds something; 0 is nothing.
type Address = driver.Address

// The parameters of kernels, with the layout and the names of the sources, which say what they mean.

// Matrix is float32 elements that lie where strides say, in elements.
type Matrix struct {
	_           structs.HostLayout
	Data        Address
	Row, Column int32
}

// Windows is the matrix of the windows of images: a row for each window, a column for each element by row, column, channel.
type Windows struct {
	_                       structs.HostLayout
	Data                    Address
	Image                   int64 // elements between images
	Height, Width, Channels int32
	Rows, Columns           int32 // of windows in an image
	KernelColumns           int32
	Stride, Top, Left       int32 // of the first window, negative within the padding
	_                       int32
}

// Pixels is the matrix of places in images: a row for each place, a column for each channel.
type Pixels struct {
	_             structs.HostLayout
	Data          Address
	Image         int64
	Rows, Columns int32 // of places in an image
	Line, Step    int32 // elements between rows of places, between places
}

// Taps is the matrix of a convolution's weights for the gradient of pixels of one phase.
type Taps struct {
	_                              structs.HostLayout
	Weight                         Address
	Kernel, Channels, Outputs, Row int32
	Stride, Top, Left              int32
	Rows, Columns                  int32
	_                              int32
}

// Start is the initial value of a product's elements.
type Start int32

// Starts.
const (
	Zero Start = iota
	Bias
	Add
)

// Epilogue is what happens to the elements of a product before they are stored. The last five multiply with the derivative
// of an activation whose result is H or, of GELU and SiLU, which was computed from H.
type Epilogue int32

// Epilogues.
const (
	None Epilogue = iota
	Tanh
	ReLU
	ELU
	GELU
	SiLU
	DTanh
	DReLU
	DELU
	DGELU
	DSiLU
)

// Product is C(i, j) = epilogue(start + Σ A(i, k)·B(j, k)). Its grid is Tiles(Rows, Columns).
type Product[A, B, C any] struct {
	_                    structs.HostLayout
	A                    A
	B                    B
	C                    C
	Bias, H, Control     Address
	Rows, Columns, Depth int32
	Start                Start
	Epilogue             Epilogue
	_                    int32
}

// Outer is the parts of a gradient C(i, j) = Σ A(r, i)·B(r, j). Its grid is Tiles(Height, Width) with Z: Parts.
type Outer[A, B any] struct {
	_                               structs.HostLayout
	A                               A
	B                               B
	C                               Matrix
	Control                         Address
	Part                            int64
	Rows, Height, Width, Parts, Run int32
	_                               int32
}

// Sums is the parts of the sums of columns. Its grid is Blocks(Columns) with Y: Parts.
type Sums[X any] struct {
	_                         structs.HostLayout
	X                         X
	C, Control                Address
	Part                      int64
	Rows, Columns, Parts, Run int32
}

// Projection is a dense node that a head reads. Its grid is Blocks(Rows) with Y: Outputs + Tails, of which there can be 65,535.
type Projection struct {
	_                                    structs.HostLayout
	X, Weight, Bias, Tail, Out, Control  Address
	Rows, Row, Depth, Outputs, Tails, LD int32
	Constant                             float32
	_                                    int32
}

// Move copies or adds rows. Its grid is Blocks(Rows · Runs · Run).
type Move struct {
	_                                               structs.HostLayout
	From, To, H, Order, Target, Control             Address
	Rows, Runs, Run                                 int32
	FromRow, FromRun, FromColumn, ToRow, ToRun, Add int32
	Epilogue                                        Epilogue
}

// Kind is a kind of distribution.
type Kind int32

// Kinds.
const (
	Choices Kind = iota
	Pairs        // of each two logits the first is 0
	Normal
	TanhNormal
)

// Head is the distribution of one action tensor, in memory of the device.
type Head struct {
	_                       structs.HostLayout
	Params, Index, Raw      Address
	Counts, Mask            Address
	Kind                    Kind
	Elements, Choices, Draw int32
	Edges                   Address
	Low, High               float32
}

// Key decides the random numbers of a row.
type Key struct {
	_          structs.HostLayout
	Seed, Step uint64
	Env        uint32
	Greedy     int32
}

// Sample draws actions. Its grid is Blocks(Rows).
type Sample struct {
	_                    structs.HostLayout
	Heads, Keys, LogProb Address
	Count, Rows, LD      int32
	_                    int32
}

// LossSums is how many float64 each block of Loss writes: the sums of the surrogate, the squared error of the value, the
// entropy, the divergence, the logarithm of the ratio and of rows beyond the clip, and the largest |ratio-1|.
const LossSums = 7

// Loss is the loss and its gradient. Its grid is Blocks(Rows).
type Loss struct {
	_                                                             structs.HostLayout
	Heads, Value, OldLogProb, OldValue, Advantage, Target         Address
	Moments, LogProb, Sums, Control                               Address
	Count, Rows, LD, Descend                                      int32
	Low, High, Clip, Mean, Entropy, ValueCoef, ValueClip, Penalty float32
	Bounds                                                        float32
	_                                                             int32
}

// Reduce adds up the parts of a gradient. Its grid is Blocks(Size).
type Reduce struct {
	_                             structs.HostLayout
	Parts, Grad, Squares, Control Address
	Part                          int64
	Size, Count                   int32
}

// Decide prepares a step of Adam. Its grid is one block.
type Decide struct {
	_                               structs.HostLayout
	Squares, OfActor, Sums, Control Address
	Blocks, LossBlocks, Rows        int32
	_                               int32
}

// Adam is a step of Adam. Its grid is Blocks(Size).
type Adam struct {
	_                               structs.HostLayout
	Params, M, V, Grad              Address
	OfActor, Control                Address
	Size                            int32
	Beta1, Keep1, Beta2, Keep2, Eps float32 // Keep is 1-β
}

// Halt ends the update after a step that exceeded TargetKL. Its grid is one block.
type Halt struct {
	_       structs.HostLayout
	Control Address
}

// Faults, in Control.Fault.
const (
	GradientFault = 1
	TargetFault   = 2
)

// Columns of a target that is not finite, in the lowest two bits of Control.FaultPlace.
const (
	RewardColumn = iota
	DiscountColumn
	BootstrapColumn
	ValueColumn
)

// NoPlace is what Control.FaultPlace is before a fault.
const NoPlace = ^uint64(0)

// Control is the state of an update, in memory of the device.
type Control struct {
	_ structs.HostLayout

	Beta1, Beta2, MaxNorm, TargetKL, AdaptiveKL, RateMin, RateMax float64
	LearningRate                                                  float32
	Apart, ClipApart                                              int32
	Rate                                                          float32
	Steps                                                         uint64

	Stopped, Fault int32
	FaultPlace     uint64

	Scale              [2]float32
	StepRate, Correct2 float32
	KL                 float64

	PolicyLoss, ValueLoss, Entropy, ApproxKL, OldApproxKL, Clipped float64
	Norm, ActorNorm, CriticNorm                                    float64
	FirstClipped, FirstRatioError, Made                            float64
	LastRate                                                       float32
	_                                                              int32
	Explained, ReturnsMean, ReturnsM2                              float64
}

// Norm is a layer norm. Its grid is Halves(Rows).
type Norm struct {
	_                                    structs.HostLayout
	X, Weight, Bias, Out, Moments, D, DX Address
	Control                              Address
	Rows, N, XRow, OutRow, DRow, DXRow   int32
	Groups                               int32
	Epilogue                             Epilogue
}

// NormOuter is the parts of the gradient of a layer norm's parameters. Its grid is Blocks(Norm.N) with Y: Parts.
type NormOuter struct {
	_              structs.HostLayout
	Norm           Norm
	DWeight, DBias Address
	Part           int64
	Parts, Run     int32
}

// Cell is the computation between the products of a recurrent node. Its grid is Blocks(Rows · N).
type Cell struct {
	_                                     structs.HostLayout
	X, S, H, Out, D, DH, Control          Address
	Rows, N                               int32
	XRow, SRow, HRow, OutRow, DRow, DHRow int32
}

// Packing moves parameters between a canonical vector and the device's. Its grid is Blocks(Count).
type Packing struct {
	_                     structs.HostLayout
	Canonical, Own, Place Address
	Count                 int32
	_                     int32
}

// Rescale changes a layer's output. Its grid is Blocks(Count + 1).
type Rescale struct {
	_                   structs.HostLayout
	Own, Place          Address
	Scale, Shift        float64
	Weight, Bias, Count int32
	_                   int32
}

// Pool is a pool of images. The grid of the pool is Blocks(Images · Rows · Columns · Channels), that of its gradient
// Blocks(Images · Height · Width · Channels).
type Pool struct {
	_                                     structs.HostLayout
	X, Out, D, DX, Control                Address
	Images, Height, Width, Channels       int32
	Rows, Columns, Kernel, Stride, Margin int32
	XImage, OutImage, DImage, DXImage     int32
	_                                     int32
}

// Block is where the columns of a block of a dataset lie, in memory of the device.
type Block struct {
	_                                                structs.HostLayout
	Obs, Reward, Value, Bootstrap, LogProb, Discount Address
	Terminated, Truncated, Valid, Active             Address
}

// Gather copies observations. Its grid is Blocks(Rows · Row).
type Gather struct {
	_                                        structs.HostLayout
	Blocks, Order, X, Mean, Scale, Control   Address
	Rows, Row, Width, Envs, BlockEnvs        int32
	StepStride, EnvStride, ElemStride, Bytes int32
	Factor                                   float32
}

// Pick is a column that a minibatch takes, in memory of the device.
type Pick struct {
	_                        structs.HostLayout
	From, To                 Address
	Size, Bytes, Row, Column int32
}

// Picks copies columns. Its grid is Blocks(Rows) with Y: the number of columns.
type Picks struct {
	_                     structs.HostLayout
	Picks, Order, Control Address
	Rows                  int32
	_                     int32
}

// Targets computes advantages and returns. Its grid is Blocks(Envs).
type Targets struct {
	_                                              structs.HostLayout
	Blocks, Advantage, Target, NewLogProb, Control Address
	Gamma, Lambda, RhoBar, CBar                    float64
	Steps, Envs, BlockEnvs                         int32
	Multiply                                       int32 // 1: an environment's discount is multiplied with gamma
}

// Advantages computes the moments of the advantages of minibatches. Its grid is a block for each.
type Advantages struct {
	_                                        structs.HostLayout
	Advantage, Order, Ends, Moments, Control Address
}

// Returns takes statistics of returns. Its grid is one block.
type Returns struct {
	_                             structs.HostLayout
	Target, Value, Valid, Control Address
	Mean, Deviation               float64
	Count, First                  int32
}
