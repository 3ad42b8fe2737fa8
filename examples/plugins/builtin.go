// Package plugins holds the environments that the rlhost program brings along, as the same files that a user
// would load from a folder.
package plugins

import _ "embed"

//go:embed cartpole-c/cartpole.wasm
var cartpole []byte

// Builtins returns the embedded environments by name@version.
func Builtins() map[string][]byte {
	return map[string][]byte{"cartpole@1": cartpole}
}
