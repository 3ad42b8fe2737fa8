package project

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of things that a folder is about.
const (
	Env       = "env"
	Component = "component"
	Python    = "python"
	Pipeline  = "pipeline"
)

// Language is how things are written and built in one language. In its texts {name} is the folder's name and {cc} the words of the
// compiler that was found.
type Language struct {
	Name      string // as typed
	Title     string
	Kinds     []string
	SDK       []part            // files of the SDK, for each kind
	Files     map[string][]part // by kind
	Compilers []Compiler        // the first that works is used
	Native    []Compiler        // build the unit tests, where they are programs of this machine
	Test      string            // lines of test.sh for an environment
	Install   string            // the one line that installs what is missing, on Debian
}

// part is a file of the repository, or a pattern of files, and where they lie in a folder: a file, or a folder that ends in a slash.
type part struct{ from, to string }

// Compiler is a way to build. Its commands run in the folder.
type Compiler struct {
	CC      string // the words that call it
	Version string // a command that prints its version in the first line
	Probe   string // a command that succeeds where it can build; {cc} is itself
	Build   string // lines of build.sh
	Once    string // lines of build.sh that only a fresh folder needs
}

const (
	cFlags   = "-O3 -msimd128 -mbulk-memory -nostdlib -I sdk/c {name}.c -o {name}.wasm"
	cxxFlags = "-mexec-model=reactor -std=c++20 -fno-exceptions -fno-rtti -O3 -msimd128 -mbulk-memory -I sdk/c {name}.cpp -o {name}.wasm"
	zigFlags = "-target wasm32-freestanding -mcpu=generic+simd128+bulk_memory -OReleaseFast -fno-entry --dep rlhost -Mroot={name}.zig -I sdk/c " +
		"-cflags -O3 -- sdk/c/rl_guest.c -Mrlhost=sdk/zig/rlhost.zig --name {name} -femit-bin={name}.wasm"
	wasmTarget = "wasm32-unknown-unknown"
)

// zigs are the words that call Zig: its own program, or the one of Python's package ziglang.
var zigs = []string{"zig", "python-zig", "python3 -m ziglang"}

// Languages returns the table.
func Languages() []Language {
	headers := []part{{"sdk/c/*.h", "sdk/c/"}, {"sdk/c/*.hpp", "sdk/c/"}}
	return []Language{
		{
			Name: "c", Title: "C", Kinds: []string{Env, Component}, SDK: headers,
			Files: map[string][]part{
				Env:       {{"examples/plugins/corridor-c/corridor.c", "{name}.c"}, {"examples/templates/env_test.c", "{name}_test.c"}, {"examples/templates/compile_flags.txt", "compile_flags.txt"}},
				Component: {{"examples/plugins/shaper-c/shaper.c", "{name}.c"}, {"examples/templates/compile_flags.txt", "compile_flags.txt"}},
			},
			Compilers: slices.Concat(
				clangs("clang", "--target=wasm32", "-nostdlib -Wl,--no-entry -x c", "-Wl,--no-entry,--stack-first "+cFlags),
				zigcc("cc", "-target wasm32-freestanding", "-nostdlib -Wl,--no-entry -x c", "-Wl,--no-entry,-z,stack-size=65536 "+cFlags)),
			Native:  natives("c", "cc", "gcc", "clang-19", "clang", "zig cc", "python-zig cc", "python3 -m ziglang cc"),
			Test:    "{cc} -g -I sdk/c {name}_test.c -o {name}_test -lm\n./{name}_test\n",
			Install: "apt-get install clang-19 lld-19 gcc libc6-dev",
		},
		{
			Name: "cpp", Title: "C++", Kinds: []string{Env}, SDK: headers,
			Files: map[string][]part{Env: {{"examples/plugins/corridor-cpp/corridor.cpp", "{name}.cpp"}, {"examples/templates/env_test.cpp", "{name}_test.cpp"},
				{"examples/templates/compile_flags_cpp.txt", "compile_flags.txt"}}},
			Compilers: slices.Concat(
				clangs("clang++", "--target=wasm32-wasi", "-mexec-model=reactor -fno-exceptions -include vector -x c++", "-Wl,--stack-first "+cxxFlags),
				zigcc("c++", "-target wasm32-wasi", "-mexec-model=reactor -fno-exceptions -include vector -x c++", "-Wl,-z,stack-size=65536 "+cxxFlags)),
			Native:  natives("c++", "c++", "g++", "clang++-19", "clang++", "zig c++", "python-zig c++", "python3 -m ziglang c++"),
			Test:    "{cc} -std=c++20 -g -I sdk/c {name}_test.cpp -o {name}_test -lm\n./{name}_test\n",
			Install: "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 g++",
		},
		{
			Name: "rust", Title: "Rust", Kinds: []string{Env, Component},
			SDK: []part{{"sdk/rust/Cargo.toml", "sdk/rust/"}, {"sdk/rust/src/*.rs", "sdk/rust/src/"}, {"examples/templates/cargo_config.toml", ".cargo/config.toml"}, {"examples/templates/Cargo.toml", "Cargo.toml"}},
			Files: map[string][]part{
				Env:       {{"examples/plugins/corridor-rust/src/lib.rs", "src/lib.rs"}, {"examples/templates/env_test.rs", "src/tests.rs"}},
				Component: {{"examples/plugins/shaper-rust/src/lib.rs", "src/lib.rs"}},
			},
			Compilers: []Compiler{{
				CC: "cargo", Version: "rustc --version",
				Probe: "rustc --target " + wasmTarget + " --crate-type lib --emit metadata -o {probe} - </dev/null",
				Build: "{cc} build --quiet --release --target " + wasmTarget + "\ncp target/" + wasmTarget + "/release/{crate}.wasm {name}.wasm\n",
			}},
			Test:    "{cc} test --quiet\n",
			Install: "curl https://sh.rustup.rs -sSf | sh -s -- -y --profile minimal --target " + wasmTarget,
		},
		{
			Name: "go", Title: "Go", Kinds: []string{Env, Component},
			SDK: []part{{"hostabi/*.go", "sdk/go/hostabi/"}, {"sdk/*.go", "sdk/go/sdk/"}, {"sdk/wasm/*.go", "sdk/go/sdk/wasm/"}, {"sdk/component/*.go", "sdk/go/sdk/component/"},
				{"sdk/component/module/*.go", "sdk/go/sdk/component/module/"}, {"sdk/rlmath/*.go", "sdk/go/sdk/rlmath/"}, {"sdk/internal/linear/*.go", "sdk/go/sdk/internal/linear/"},
				{"examples/templates/sdk_go.mod.txt", "sdk/go/go.mod"}, {"examples/templates/folder_go.mod.txt", "go.mod"}},
			Files: map[string][]part{
				Env:       {{"examples/plugins/corridor-go/main.go", "main.go"}, {"examples/templates/env_test.go.txt", "main_test.go"}},
				Component: {{"examples/plugins/shaper-go/main.go", "main.go"}, {"examples/plugins/shaper-go/shaper/shaper.go", "shaper/shaper.go"}},
			},
			Compilers: []Compiler{{
				CC: "go", Version: "go version", Probe: "go version",
				Build: "GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 {cc} build -buildmode=c-shared -ldflags='-s -w' -o {name}.wasm .\n",
			}},
			Test:    "{cc} test ./...\n",
			Install: "go 1.24 or newer: https://go.dev/dl",
		},
		{
			Name: "zig", Title: "Zig", Kinds: []string{Env}, SDK: []part{{"sdk/c/*.h", "sdk/c/"}, {"sdk/c/rl_guest.c", "sdk/c/"}, {"sdk/zig/*.zig", "sdk/zig/"}},
			Files:     map[string][]part{Env: {{"examples/plugins/corridor-zig/corridor.zig", "{name}.zig"}}},
			Compilers: zigBuild(),
			Test:      "{cc} test --dep rlhost -Mroot={name}.zig -Mrlhost=sdk/zig/rlhost.zig\n",
			Install:   "pip install ziglang==0.17.1",
		},
		{
			Name: "as", Title: "AssemblyScript", Kinds: []string{Env},
			SDK: []part{{"sdk/assemblyscript/*.ts", "sdk/assemblyscript/"}, {"sdk/assemblyscript/package.json", "sdk/assemblyscript/"}, {"examples/templates/package.json", "package.json"},
				{"examples/templates/tsconfig.json", "tsconfig.json"}},
			Files: map[string][]part{Env: {{"examples/plugins/corridor-assemblyscript/corridor.ts", "{name}.ts"}}},
			Compilers: []Compiler{{
				CC: "node", Version: "node --version", Probe: "npm --version",
				Once: "[ -d node_modules ] || npm install --silent --no-audit --no-fund\n",
				// The compiler is WebAssembly itself, and ends before optimising that would pay: without, it takes 1.6 s instead of 2.3 s.
				Build: "{cc} --liftoff-only node_modules/assemblyscript/bin/asc.js {name}.ts -o {name}.wasm -O3 --noAssert --runtime minimal --exportStart _initialize --use abort=~lib/rlhost-env/index/rlAbort\n",
			}},
			Install: "apt-get install nodejs npm",
		},
		{
			Name: "python", Title: "Python", Kinds: []string{Env, Component, Python},
			SDK: []part{{"sdk/python/*", "sdk/python/"}, {"sdk/python/rlhost/*", "sdk/python/rlhost/"}, {"sdk/python/rlhost/*/*", "sdk/python/rlhost/"}, {"sdk/python/src/*", "sdk/python/src/"},
				{"sdk/c/native/*", "sdk/python/native/"}, {"pipeline/export/rlhost_policy.py", "sdk/python/"}},
			Files: map[string][]part{
				Env:       {{"examples/templates/env.py", "{module}.py"}, {"examples/templates/env_test.py", "test_{module}.py"}},
				Component: {{"examples/plugins/process-python/shaper.py", "{module}.py"}},
				Python:    {{"examples/templates/env.py", "{module}.py"}, {"examples/templates/env_test.py", "test_{module}.py"}, {"examples/templates/train.py", "train.py"}},
			},
			Compilers: []Compiler{{
				CC: ".venv/bin/python", Version: "python3 --version", Probe: "python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))'",
				Once:  "[ -x .venv/bin/python ] || python3 -m venv .venv\n",
				Build: "RLHOST_PROGRAM= .venv/bin/pip install --quiet --disable-pip-version-check ./sdk/python gymnasium\n",
			}},
			Test:    "{cc} -m unittest\n",
			Install: "apt-get install python3 python3-venv python3-dev gcc",
		},
	}
}

// clangs are clang by its plain name and by the one that Debian gives to the oldest version that will do.
func clangs(name, target, probe, flags string) (list []Compiler) {
	for _, cc := range []string{name + "-19", name, name + "-20", name + "-21"} {
		list = append(list, Compiler{CC: cc, Version: cc + " --version", Probe: probeC(target, probe), Build: "{cc} " + target + " " + flags + "\n"})
	}
	return list
}

// zigcc is the compiler of C within Zig.
func zigcc(what, target, probe, flags string) (list []Compiler) {
	for _, zig := range zigs {
		list = append(list, Compiler{CC: zig + " " + what, Version: zig + " version", Probe: probeC(target, probe), Build: "{cc} " + target + " " + flags + "\n"})
	}
	return list
}

func zigBuild() (list []Compiler) {
	for _, zig := range zigs {
		list = append(list, Compiler{CC: zig, Version: zig + " version", Probe: "{cc} version", Build: "{cc} build-exe " + zigFlags + "\n"})
	}
	return list
}

// natives build programs of this machine.
func natives(language string, names ...string) (list []Compiler) {
	for _, cc := range names {
		list = append(list, Compiler{CC: cc, Version: cc + " --version",
			Probe: "echo 'int main(void) { return 0; }' | {cc} -include math.h -x " + language + " - -o {probe} -lm"})
	}
	return list
}

func probeC(target, flags string) string {
	return fmt.Sprintf("{cc} %s %s - -o {probe} </dev/null", target, flags)
}

// Named returns the language of a name as typed, by its title or its file ending too.
func Named(name string) (Language, bool) {
	other := map[string]string{"c++": "cpp", "cc": "cpp", "cxx": "cpp", "rs": "rust", "golang": "go", "assemblyscript": "as", "typescript": "as", "ts": "as", "py": "python"}
	name = strings.ToLower(name)
	if its, ok := other[name]; ok {
		name = its
	}
	list := Languages()
	i := slices.IndexFunc(list, func(l Language) bool { return l.Name == name })
	if i < 0 {
		return Language{}, false
	}
	return list[i], true
}

// Names returns the names of the languages that have a kind; empty is any.
func Names(kind string) (names []string) {
	for _, l := range Languages() {
		if kind == "" || slices.Contains(l.Kinds, kind) {
			names = append(names, l.Name)
		}
	}
	return names
}
