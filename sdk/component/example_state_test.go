package component_test

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
)

// The value that State points to is saved with each checkpoint and before a swap, and restored in the component that continues.
func ExampleDeclared_state() {
	type seen struct{ Blocks, Falls uint64 }

	before := seen{Blocks: 8, Falls: 31}
	saved, err := (&component.Declared{State: &before}).Snapshot()
	fmt.Println(len(saved), err)

	var after seen
	next := &component.Declared{State: &after}
	fmt.Println(next.Restore(saved), after)
	fmt.Println(next.Restore(saved[:8]))
	// Output:
	// 16 <nil>
	// <nil> {8 31}
	// a state of 8 bytes, want 16: it is that of another version of the component
}
