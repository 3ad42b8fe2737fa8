package kernels

import (
	"embed"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// Of the PTX: its compiler and target. It assembles for any device from Capability on, by drivers of CUDA 11.8 and newer.
const (
	Compiler   = "13.0.88"
	Version    = "7.8"
	Capability = 80 // 8.0
)

// Threads of a block, of all kernels except kernels of one block, or of one block for each minibatch.
const (
	threads = 256
	wide    = 1024
	warp    = 32
)

// Bounds of the registers of a thread: with so many, four blocks share a multiprocessor, or two.
const (
	registers = 64
	half      = 128
)

// Entry describes a kernel before it is loaded.
type Entry struct {
	Module, Name string
	Threads      int          // of a block
	Registers    int          // of a thread, at most; none is ever spilled
	Parameter    reflect.Type // the struct that is its one parameter
}

// Kernel is a kernel whose parameter is a T.
type Kernel[T any] struct{ Entry }

func kernel[T any](module, name string, threads, registers int) Kernel[T] {
	return Kernel[T]{Entry{module, name, threads, registers, reflect.TypeFor[T]()}}
}

// The kernels. What they compute is said where their parameters are.
var (
	DenseKernel  = kernel[Product[Matrix, Matrix, Matrix]]("layered", "dense", threads, registers)
	OuterKernel  = kernel[Outer[Matrix, Matrix]]("layered", "outer", threads, half)
	SumsKernel   = kernel[Sums[Matrix]]("layered", "sums", threads, registers)
	HeadsKernel  = kernel[Projection]("layered", "heads", threads, registers)
	MoveKernel   = kernel[Move]("layered", "move", threads, registers)
	SampleKernel = kernel[Sample]("heads", "sample", threads, registers)
	LossKernel   = kernel[Loss]("heads", "loss", threads, registers)
	ReduceKernel = kernel[Reduce]("optimizer", "reduce", threads, registers)
	DecideKernel = kernel[Decide]("optimizer", "decide", threads, registers)
	AdamKernel   = kernel[Adam]("optimizer", "adam", threads, registers)
	HaltKernel   = kernel[Halt]("optimizer", "halt", warp, registers)

	LayerNormKernel      = kernel[Norm]("norm", "layerNorm", threads, registers)
	LayerNormBackKernel  = kernel[Norm]("norm", "layerNormBack", threads, registers)
	LayerNormOuterKernel = kernel[NormOuter]("norm", "layerNormOuter", threads, registers)
	GRUKernel            = kernel[Cell]("cells", "gru", threads, registers)
	GRUBackKernel        = kernel[Cell]("cells", "gruBack", threads, registers)
	LSTMKernel           = kernel[Cell]("cells", "lstm", threads, registers)
	LSTMBackKernel       = kernel[Cell]("cells", "lstmBack", threads, registers)
	ConvKernel           = kernel[Product[Windows, Matrix, Pixels]]("image", "conv", threads, registers)
	ConvBackKernel       = kernel[Product[Windows, Taps, Pixels]]("image", "convBack", threads, registers)
	ConvOuterKernel      = kernel[Outer[Windows, Pixels]]("image", "convOuter", threads, half)
	ConvSumsKernel       = kernel[Sums[Pixels]]("image", "convSums", threads, registers)
	PoolKernel           = kernel[Pool]("image", "pool", threads, registers)
	PoolBackKernel       = kernel[Pool]("image", "poolBack", threads, registers)

	PackKernel       = kernel[Packing]("pack", "pack", threads, registers)
	UnpackKernel     = kernel[Packing]("pack", "unpack", threads, registers)
	RescaleKernel    = kernel[Rescale]("pack", "rescale", threads, registers)
	GatherKernel     = kernel[Gather]("dataset", "gather", threads, registers)
	PicksKernel      = kernel[Picks]("dataset", "picks", threads, registers)
	TargetsKernel    = kernel[Targets]("dataset", "targets", threads, registers)
	AdvantagesKernel = kernel[Advantages]("dataset", "advantages", wide, registers)
	ReturnsKernel    = kernel[Returns]("dataset", "returns", wide, registers)
)

// Entries lists the kernels by module.
func Entries() []Entry {
	return []Entry{
		DenseKernel.Entry, OuterKernel.Entry, SumsKernel.Entry, HeadsKernel.Entry, MoveKernel.Entry,
		SampleKernel.Entry, LossKernel.Entry,
		ReduceKernel.Entry, DecideKernel.Entry, AdamKernel.Entry, HaltKernel.Entry,
		LayerNormKernel.Entry, LayerNormBackKernel.Entry, LayerNormOuterKernel.Entry,
		GRUKernel.Entry, GRUBackKernel.Entry, LSTMKernel.Entry, LSTMBackKernel.Entry,
		ConvKernel.Entry, ConvBackKernel.Entry, ConvOuterKernel.Entry, ConvSumsKernel.Entry, PoolKernel.Entry, PoolBackKernel.Entry,
		PackKernel.Entry, UnpackKernel.Entry, RescaleKernel.Entry,
		GatherKernel.Entry, PicksKernel.Entry, TargetsKernel.Entry, AdvantagesKernel.Entry, ReturnsKernel.Entry,
	}
}

// Modules lists the names of the modules.
func Modules() []string {
	var names []string
	for _, e := range Entries() {
		if !slices.Contains(names, e.Module) {
			names = append(names, e.Module)
		}
	}
	return names
}

//go:embed *.ptx
var texts embed.FS

// PTX returns the text of a module.
func PTX(module string) []byte {
	text, err := texts.ReadFile(module + ".ptx")
	if err != nil {
		panic("kernels: no module " + module)
	}
	return text
}

// Set is the kernels of a device.
type Set struct {
	device    *driver.Device
	modules   []*driver.Module
	functions map[string]*driver.Function
}

// Load assembles all modules, which takes some seconds the first time on a machine: the driver keeps the result. A device
// below Capability is an error.
func Load(d *driver.Device) (*Set, error) {
	if err := Suits(d); err != nil {
		return nil, err
	}
	s := &Set{device: d, functions: map[string]*driver.Function{}}
	loaded := map[string]*driver.Module{}
	for _, e := range Entries() {
		m := loaded[e.Module]
		if m == nil {
			var err error
			if m, err = d.Load(PTX(e.Module)); err != nil {
				return nil, errors.Join(fmt.Errorf("module %s: %w", e.Module, err), s.Close())
			}
			loaded[e.Module], s.modules = m, append(s.modules, m)
		}
		f, err := m.Function(e.Name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("module %s: %w", e.Module, err), s.Close())
		}
		s.functions[e.Name] = f
	}
	return s, nil
}

// ErrOldDevice is what Suits reports.
var ErrOldDevice = errors.New("the GPU is too old")

// Suits reports a device below Capability.
func Suits(d *driver.Device) error {
	if d.Major*10+d.Minor < Capability {
		return fmt.Errorf("%w: %s has compute capability %d.%d, 8.0 or newer is needed", ErrOldDevice, d.Name, d.Major, d.Minor)
	}
	return nil
}

// Close unloads the modules, of which no launch may be under way.
func (s *Set) Close() error {
	var failed error
	for _, m := range s.modules {
		failed = errors.Join(failed, m.Close())
	}
	return failed
}

// New prepares launches of a kernel, with the threads that it has and a parameter that is zero. The caller sets the grid and
// closes it.
func New[T any](s *Set, k Kernel[T]) (*driver.Launch, *T, error) {
	l, args, err := driver.NewLaunch[T](s.functions[k.Name])
	if err == nil {
		l.Block = driver.Dim{X: k.Threads}
	}
	return l, args, err
}

// Blocks is the grid of kernels with a thread for each of n, at least one.
func Blocks(n int) driver.Dim { return driver.Dim{X: (n + threads - 1) / threads} }

// Tiles is the grid of products, with a block for each 64 by 64 elements.
func Tiles(rows, columns int) driver.Dim {
	return driver.Dim{X: (rows + 63) / 64, Y: (columns + 63) / 64}
}

// Halves is the grid of kernels with sixteen threads for each of n rows.
func Halves(n int) driver.Dim { return Blocks(16 * n) }
