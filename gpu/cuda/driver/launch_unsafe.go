package driver

import (
	"fmt"
	"os"
	"reflect"
	"syscall"
	"unsafe"
)

// Dim counts blocks of a grid or threads of a block. A zero counts as 1 in Y and Z.
type Dim struct{ X, Y, Z int }

// Launch is a kernel with its arguments, to be launched any number of times. A launch that is under way has its own copy of
// the arguments.
type Launch struct {
	Grid, Block Dim
	Shared      int // bytes of shared memory for each block, besides the kernel's own

	function *Function
	page     []byte
}

// argumentsAt is the offset of arguments in a launch's page, after the table of pointers to them.
const argumentsAt = 64

// NewLaunch prepares launches of a kernel that has one parameter, a struct of type T, with the layout that C gives it. The
// arguments lie outside the Go heap, where the driver may keep the table of pointers to them; they are zero at first, and the
// launch's until Close. T that does not fit a page of memory or has pointers of Go's is a mistake of the program: a panic.
func NewLaunch[T any](f *Function) (*Launch, *T, error) {
	size, of := int(unsafe.Sizeof(*new(T))), reflect.TypeFor[T]()
	page := os.Getpagesize()
	if size == 0 || size > page-argumentsAt || hasPointers(of) {
		panic(fmt.Sprintf("driver: %v cannot be the parameter of a kernel", of))
	}
	b, err := syscall.Mmap(-1, 0, page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, nil, fmt.Errorf("memory for the arguments of %s: %w", f.Name, err)
	}
	*(*uintptr)(unsafe.Pointer(&b[0])) = uintptr(unsafe.Pointer(&b[argumentsAt]))
	return &Launch{function: f, page: b}, (*T)(unsafe.Pointer(&b[argumentsAt])), nil
}

// hasPointers reports whether values of a type refer to others.
func hasPointers(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k == reflect.Array:
		return hasPointers(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	default:
		return k < reflect.Bool || k > reflect.Complex128 || k == reflect.Uintptr
	}
}

// Close frees the arguments.
func (l *Launch) Close() error { return syscall.Munmap(l.page) }

// parameters is the address of the table of pointers to the arguments.
func (l *Launch) parameters() uintptr { return uintptr(unsafe.Pointer(&l.page[0])) }
