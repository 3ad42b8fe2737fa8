package loop

import "fmt"

// PanicError is what Run returns when a slot or a timer panics. The loop does not run again.
type PanicError struct {
	Loop      string // name of the loop
	Component string // name of the receiver whose slot ran
	Value     any    // the argument of panic
	Stack     []byte // of the slot
}

// Error names loop and component, and ends with the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("loop %q: component %q: panic: %v\n%s", e.Loop, e.Component, e.Value, e.Stack)
}

// Unwrap returns the value given to panic if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
