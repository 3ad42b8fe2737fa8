package cuda

import (
	"cmp"
	"errors"
	"os"
	"sync"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Options configure a backend. The zero value is what programs use.
type Options struct {
	// Driver returns the driver's functions. nil loads the library that RLHOST_CUDA_DRIVER names, else driver.Library.
	Driver func() (*driver.Table, error)
}

// Backend makes actors and learners of the first device that CUDA_VISIBLE_DEVICES leaves, which they share.
type Backend struct {
	options Options

	mu     sync.Mutex
	device *device // guarded by mu; nil until it is needed

	arenas arenas
}

var _ policy.Backend = (*Backend)(nil)

// device is one with its kernels.
type device struct {
	*driver.Device
	set    *kernels.Set
	arenas *arenas
}

// New returns a backend. The device is opened when it is first needed.
func New(o Options) *Backend { return &Backend{options: o} }

// Name returns "cuda".
func (b *Backend) Name() string { return "cuda" }

// Kernels is how names the kernels: all devices give the same bits.
const Kernels = "cuda-fp32"

// Kernels returns the constant Kernels.
func (b *Backend) Kernels() string { return Kernels }

// Find describes the device that the backend uses, which it opens and closes to do so. Errors are driver.Open's and
// Table.Device's, and the error for a device whose compute capability is too low.
func (b *Backend) Find() (*driver.Device, error) {
	d, err := b.retain()
	if err != nil {
		return nil, err
	}
	return d, errors.Join(kernels.Suits(d), d.Close())
}

// retain opens the device.
func (b *Backend) retain() (*driver.Device, error) {
	open := b.options.Driver
	if open == nil {
		open = func() (*driver.Table, error) {
			return driver.Open(cmp.Or(os.Getenv("RLHOST_CUDA_DRIVER"), driver.Library))
		}
	}
	table, err := open()
	if err != nil {
		return nil, err
	}
	return table.Device(0)
}

// open returns the device with its kernels, which the first call loads: that may take some seconds.
func (b *Backend) open() (*device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.device != nil {
		return b.device, nil
	}
	d, err := b.retain()
	if err != nil {
		return nil, err
	}
	set, err := kernels.Load(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	b.device = &device{d, set, &b.arenas}
	return b.device, nil
}

// Close releases the device. Actors and learners must have been closed.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.device == nil {
		return nil
	}
	err := errors.Join(b.arenas.close(), b.device.set.Close(), b.device.Close())
	b.device = nil
	return err
}

// program is a network on a backend's device.
type program struct {
	*Backend
	layout *layout
}

var _ ppo.Program = (*program)(nil)

// Compile lays out the network. It needs no device.
func (b *Backend) Compile(n *policy.Network) (policy.Program, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	l, err := newLayout(n.Clone())
	if err != nil {
		return nil, err
	}
	return &program{b, l}, nil
}

// NewActor prepares acting on up to maxRows rows a call; more are acted on in turns.
func (p *program) NewActor(maxRows int) (policy.Actor, error) {
	d, err := p.open()
	if err != nil {
		return nil, err
	}
	return newActor(d, p.layout, maxRows)
}

// NewLearner prepares learning from params.
func (p *program) NewLearner(params []float32, c ppo.Config) (ppo.Learner, error) {
	d, err := p.open()
	if err != nil {
		return nil, err
	}
	e, err := newEngine(d, p.layout, params, c)
	if err != nil {
		return nil, err
	}
	return ppo.Over(e, &p.layout.net, p.layout.net.Params(), c)
}
