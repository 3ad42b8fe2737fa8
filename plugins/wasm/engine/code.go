package engine

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Code is a compiled module. Its methods may be called concurrently. It must be closed when nothing runs in it any more.
type Code struct {
	sandbox  *sandbox
	compiled wazero.CompiledModule
	ctx      context.Context
	leave    func() error
	link     sync.Once
	unlinked error // why link failed
}

// Context ends when the Engine is closed: its users must stop then.
func (c *Code) Context() context.Context { return c.ctx }

// Instantiate makes an instance of the module whose memory comes from mem. No code of the module runs.
func (c *Code) Instantiate(mem experimental.MemoryAllocator) (api.Module, error) {
	if c.link.Do(func() { c.unlinked = c.sandbox.link(c.compiled) }); c.unlinked != nil {
		return nil, c.unlinked
	}
	withMemory := experimental.WithMemoryAllocator(context.Background(), mem)
	// Nothing reads wazero's random source; making its default one takes longer than the rest.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(strings.NewReader(""))
	return c.sandbox.wz.InstantiateModule(withMemory, c.compiled, config)
}

// Close releases the code.
func (c *Code) Close() error { return errors.Join(c.compiled.Close(context.Background()), c.leave()) }
