package rlhost

import (
	"embed"
	"io/fs"
)

//go:embed hostabi/*[^t].go hostabi/*[^s]t.go hostabi/*[^t]est.go sdk/*[^t].go sdk/rlmath/*[^t].go sdk/rlmath/*[^s]t.go sdk/internal/linear/*.go
//go:embed sdk/wasm/*[^t].go sdk/wasm/*[^s]t.go sdk/wasm/*[^e]st.go sdk/component/module/*[^t].go sdk/component/module/*[^t]est.go
//go:embed sdk/component/*[^t].go sdk/component/*[^s]t.go sdk/component/*[^e]st.go sdk/component/*[^t]est.go
//go:embed sdk/c/*.h sdk/c/*.hpp sdk/c/rl_guest.c sdk/c/native/*.c sdk/c/native/*.h
//go:embed sdk/assemblyscript/*.ts sdk/assemblyscript/package.json sdk/rust/Cargo.toml sdk/rust/src/*.rs sdk/zig/*.zig sdk/zig/build.zig.zon
//go:embed sdk/python/rlhost/*.py sdk/python/rlhost/*/*.py sdk/python/rlhost/*.pyi sdk/python/rlhost/py.typed
//go:embed sdk/python/src/*.c sdk/python/src/*.h sdk/python/README.md sdk/python/*.in sdk/python/pyproject.toml sdk/python/setup.py pipeline/export/rlhost_policy.py
//go:embed examples/plugins/corridor-assemblyscript/*.ts examples/plugins/corridor-c/*.c examples/plugins/corridor-cpp/*.cpp
//go:embed examples/plugins/corridor-go/*.go examples/plugins/corridor-rust/src/*.rs examples/plugins/corridor-zig/*.zig
//go:embed examples/plugins/shaper-c/*.c examples/plugins/shaper-go/*.go examples/plugins/shaper-go/shaper/*.go examples/plugins/shaper-rust/src/*.rs
//go:embed examples/plugins/process-python/*.py examples/templates LICENSE
var sources embed.FS

// Sources are files of this repository, by their paths in it, that an author of environments or components begins with: the SDKs, and an
// example in each language, without their tests. A program that does not call it does not hold them.
func Sources() fs.FS { return sources }
