// Package plugins holds the environments that the rlhost program brings along, as the same files that a user
// would load from a folder.
package plugins

import _ "embed"

//go:embed acrobot-c/acrobot.wasm
var acrobot []byte

//go:embed cartpole-c/cartpole.wasm
var cartpole []byte

//go:embed mountaincar-c/mountaincar.wasm
var mountaincar []byte

// Builtins returns the embedded environments by name@version.
func Builtins() map[string][]byte {
	return map[string][]byte{"acrobot@1": acrobot, "cartpole@1": cartpole, "mountaincar@1": mountaincar}
}
