//go:build !wasip1

package module

import "github.com/rlhost/rlhost/sdk/component"

// Serve does nothing: natively there is no host.
func Serve(_ string, _ func() component.Component) {}
