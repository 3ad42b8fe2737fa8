package driver

import (
	"bytes"
	"fmt"
)

// Module is kernels that were assembled for the device.
type Module struct {
	device *Device
	handle uint64
}

// Load assembles a module from PTX. An *Error has the assembler's messages.
func (d *Device) Load(ptx []byte) (*Module, error) {
	m := &Module{device: d}
	c := newCalls(d.table)
	err := d.do(c, func() (err error) {
		m.handle, err = c.load(append(bytes.Clone(ptx), 0))
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close unloads the module, of which no launch may be under way.
func (m *Module) Close() error {
	return m.device.call(newCalls(m.device.table), cuModuleUnload, uintptr(m.handle))
}

// Function is a kernel of a module.
type Function struct {
	Name      string
	Registers int // of a thread
	Local     int // bytes of a thread that do not fit registers
	Shared    int // bytes of shared memory that a block has whatever the launch asks for

	device *Device
	handle uint64
}

// Attributes of functions.
const (
	attributeShared    = 1
	attributeLocal     = 3
	attributeRegisters = 4
)

// Function returns a kernel by its name.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{Name: name, device: m.device}
	c := newCalls(m.device.table)
	err := m.device.do(c, func() (err error) {
		f.handle, err = c.function(m.handle, append([]byte(name), 0))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	for attribute, to := range map[uintptr]*int{attributeShared: &f.Shared, attributeLocal: &f.Local, attributeRegisters: &f.Registers} {
		if err := m.device.call(c, cuFuncGetAttribute, c.result(0), attribute, uintptr(f.handle)); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", name, err)
		}
		*to = int(int32(c.results[0]))
	}
	return f, nil
}
