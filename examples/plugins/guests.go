// Package plugins is the table of the example guests. It holds the environments that the rlhost program brings along, as
// the same files that a user would load from a folder.
package plugins

import (
	"embed"
	"slices"
)

// Guest is a row of the table: one module, its sources and its build. The program that builds guests (folder build)
// and every test that is about all of them read it.
type Guest struct {
	Module    string   // its file, below examples/plugins; guests of one folder share the sources there
	Env       string   // guests of the same environment write the same bits; a component's name
	Language  Language // of its sources
	Flags     []string // for the compiler, besides the flags of its language
	Package   *Package // with sources that the build fetches; {package} is its folder in Flags
	Committed bool     // the module is in the repository, next to a record of its sources
	Component bool     // it is a module of components
	Wrapper   bool     // of wrappers of environments alone, which need not exist in each language
	Builtin   string   // name@version under which the rlhost program brings it along; it must be embedded below
}

// Language is how the guests of one language are built. In its texts {root} stands for the repository's folder, {folder}
// for the guest's, relative to it, {env} for the guest's environment, and {module} for the file to write.
type Language struct {
	Name      string     // the name of its section in docs/start/environment.md
	Sources   []string   // patterns of the files that a module is made from, relative to {root}
	Compilers []Compiler // the first that works here is used
}

// Compiler is a way to build guests. Its commands run in the guest's folder.
type Compiler struct {
	Version []string // prints, in the first line, the compiler's entry in a module's record
	Probe   []string // makes a module of an empty standard input, or fails where guests cannot be built
	Build   []string // the guest's Flags follow
	Env     []string // more variables for Build
	Output  string   // where Build leaves the module, relative to the guest's folder; empty: in {module}
}

// Guests returns the table.
func Guests() []Guest {
	scalar := []string{"-mno-simd128"}
	return []Guest{
		{Module: "acrobot-c/acrobot.wasm", Env: "acrobot", Language: c(), Committed: true, Builtin: "acrobot@1"},
		{Module: "cartpole-assemblyscript/cartpole.wasm", Env: "cartpole", Language: assemblyscript()},
		{Module: "cartpole-c/cartpole.wasm", Env: "cartpole", Language: c(), Committed: true, Builtin: "cartpole@1"},
		{Module: "cartpole-c/cartpole_scalar.wasm", Env: "cartpole", Language: c(), Flags: scalar, Committed: true},
		{Module: "cartpole-c/cartpole_positions.wasm", Env: "cartpole_positions", Language: c(), Committed: true, Builtin: "cartpole-positions@1"},
		{Module: "cartpole-go/cartpole.wasm", Env: "cartpole", Language: golang()},
		{Module: "cartpole-nim/cartpole.wasm", Env: "cartpole", Language: nim()},
		{Module: "cartpole-rust/cartpole.wasm", Env: "cartpole", Language: rust(), Committed: true},
		{Module: "cartpole-cpp/cartpole.wasm", Env: "cartpole", Language: cpp(), Committed: true},
		{Module: "cartpole-zig/cartpole.wasm", Env: "cartpole", Language: zig()},
		{Module: "cartpole-zig-lanes/cartpole.wasm", Env: "cartpole", Language: zig()},
		{Module: "center-c/center.wasm", Env: "center", Language: c(), Component: true, Wrapper: true, Committed: true},
		{Module: "chase-c/chase.wasm", Env: "chase", Language: c(), Committed: true, Builtin: "chase@1"},
		{Module: "chooser-c/chooser.wasm", Env: "chooser", Language: c(), Component: true, Committed: true},
		{Module: "chooser-rust/chooser.wasm", Env: "chooser", Language: rust(), Component: true},
		{Module: "chooser-go/chooser.wasm", Env: "chooser", Language: golang(), Component: true},
		{Module: "connectfour-c/connectfour.wasm", Env: "connectfour", Language: c(), Committed: true, Builtin: "connectfour@1"},
		{Module: "corridor-assemblyscript/corridor.wasm", Env: "corridor", Language: assemblyscript()},
		{Module: "corridor-c/corridor.wasm", Env: "corridor", Language: c(), Committed: true},
		{Module: "corridor-cpp/corridor.wasm", Env: "corridor", Language: cpp()},
		{Module: "corridor-go/corridor.wasm", Env: "corridor", Language: golang()},
		{Module: "corridor-rust/corridor.wasm", Env: "corridor", Language: rust()},
		{Module: "corridor-zig/corridor.wasm", Env: "corridor", Language: zig()},
		{Module: "courier-cpp/courier.wasm", Env: "courier", Language: cpp(), Committed: true},
		{Module: "curriculum-c/curriculum.wasm", Env: "curriculum", Language: c(), Component: true, Committed: true},
		{Module: "curriculum-c/walk.wasm", Env: "walk", Language: c(), Committed: true},
		{Module: "curriculum-rust/curriculum.wasm", Env: "curriculum", Language: rust(), Component: true},
		{Module: "curriculum-go/curriculum.wasm", Env: "curriculum", Language: golang(), Component: true},
		{Module: "episodes-c/episodes.wasm", Env: "episodes", Language: c(), Component: true, Committed: true},
		{Module: "episodes-rust/episodes.wasm", Env: "episodes", Language: rust(), Component: true},
		{Module: "episodes-go/episodes.wasm", Env: "episodes", Language: golang(), Component: true},
		{Module: "flicker-c/flicker.wasm", Env: "flicker", Language: c(), Component: true, Wrapper: true, Committed: true},
		{Module: "flicker-rust/flicker.wasm", Env: "flicker", Language: rust(), Component: true, Wrapper: true},
		{Module: "flicker-go/flicker.wasm", Env: "flicker", Language: golang(), Component: true, Wrapper: true},
		{Module: "foragers-c/foragers.wasm", Env: "foragers", Language: c(), Committed: true},
		{Module: "foragers-go/foragers.wasm", Env: "foragers", Language: golang()},
		{Module: "foragers-rust/foragers.wasm", Env: "foragers", Language: rust()},
		{Module: "games-assemblyscript/connectfour.wasm", Env: "connectfour", Language: assemblyscript()},
		{Module: "games-assemblyscript/foragers.wasm", Env: "foragers", Language: assemblyscript()},
		{Module: "games-assemblyscript/lander.wasm", Env: "lander", Language: assemblyscript()},
		{Module: "games-assemblyscript/spaces.wasm", Env: "spaces", Language: assemblyscript()},
		{Module: "games-assemblyscript/tuple.wasm", Env: "tuple", Language: assemblyscript()},
		{Module: "games-zig/connectfour.wasm", Env: "connectfour", Language: zig()},
		{Module: "games-zig/foragers.wasm", Env: "foragers", Language: zig()},
		{Module: "games-zig/lander.wasm", Env: "lander", Language: zig()},
		{Module: "games-zig/spaces.wasm", Env: "spaces", Language: zig()},
		{Module: "games-zig/tuple.wasm", Env: "tuple", Language: zig()},
		{Module: "lander-c/lander.wasm", Env: "lander", Language: c()},
		{Module: "lander-go/lander.wasm", Env: "lander", Language: golang()},
		{Module: "lander-rust/lander.wasm", Env: "lander", Language: rust()},
		{Module: "lunarlander-cpp/lunarlander.wasm", Env: "lunarlander", Language: cpp(), Package: Box2D(), Committed: true,
			Flags: []string{"-I", ".", "-isystem", "{package}", "-mllvm", "-inline-threshold=2000"}},
		{Module: "minatar-c/breakout.wasm", Env: "breakout", Language: c(), Committed: true, Builtin: "minatar-breakout@1"},
		{Module: "minatar-c/freeway.wasm", Env: "freeway", Language: c(), Committed: true, Builtin: "minatar-freeway@1"},
		{Module: "mountaincar-c/mountaincar.wasm", Env: "mountaincar", Language: c(), Committed: true, Builtin: "mountaincar@1"},
		{Module: "mountaincarcontinuous-c/mountaincarcontinuous.wasm", Env: "mountaincarcontinuous", Language: c(), Committed: true,
			Builtin: "mountaincarcontinuous@1"},
		{Module: "nim-cpp/nim.wasm", Env: "nim", Language: cpp(), Committed: true},
		{Module: "opponent-c/opponent.wasm", Env: "opponent", Language: c(), Component: true, Committed: true},
		{Module: "opponent-rust/opponent.wasm", Env: "opponent", Language: rust(), Component: true},
		{Module: "opponent-go/opponent.wasm", Env: "opponent", Language: golang(), Component: true},
		{Module: "pendulum-c/pendulum.wasm", Env: "pendulum", Language: c(), Committed: true, Builtin: "pendulum@1"},
		{Module: "pendulum-c/pendulum_positions.wasm", Env: "pendulum_positions", Language: c(), Committed: true, Builtin: "pendulum-positions@1"},
		{Module: "sanity-c/bandit.wasm", Env: "bandit", Language: c(), Committed: true, Builtin: "bandit@1"},
		{Module: "sanity-c/continuous.wasm", Env: "continuous", Language: c(), Committed: true, Builtin: "continuous@1"},
		{Module: "sanity-c/memory.wasm", Env: "memory", Language: c(), Committed: true, Builtin: "memory@1"},
		{Module: "sanity-c/password.wasm", Env: "password", Language: c(), Committed: true, Builtin: "password@1"},
		{Module: "sanity-c/spaces.wasm", Env: "spaces", Language: c(), Committed: true, Builtin: "spaces@1"},
		{Module: "sanity-c/squared.wasm", Env: "squared", Language: c(), Committed: true, Builtin: "squared@1"},
		{Module: "sanity-c/stochastic.wasm", Env: "stochastic", Language: c(), Committed: true, Builtin: "stochastic@1"},
		{Module: "sanity-c/tuple.wasm", Env: "tuple", Language: c(), Committed: true, Builtin: "tuple@1"},
		{Module: "shaper-c/shaper.wasm", Env: "shaper", Language: c(), Component: true, Committed: true},
		{Module: "shaper-rust/shaper.wasm", Env: "shaper", Language: rust(), Component: true},
		{Module: "shaper-go/shaper.wasm", Env: "shaper", Language: golang(), Component: true},
		{Module: "snake-c/snake.wasm", Env: "snake", Language: c(), Committed: true, Builtin: "snake@1"},
		{Module: "spaces-go/spaces.wasm", Env: "spaces", Language: golang()},
		{Module: "spaces-rust/spaces.wasm", Env: "spaces", Language: rust()},
		{Module: "squash-c/squash.wasm", Env: "squash", Language: c(), Committed: true, Builtin: "squash@1"},
		{Module: "tag-c/tag.wasm", Env: "tag", Language: c(), Committed: true, Builtin: "tag@1"},
		{Module: "taxi-c/taxi.wasm", Env: "taxi", Language: c(), Committed: true, Builtin: "taxi@1"},
		{Module: "walk-go/walk.wasm", Env: "walk", Language: golang()},
		{Module: "walk-rust/walk.wasm", Env: "walk", Language: rust()},
	}
}

// Interpreter returns the row of the module that computes exported policies: no guest, but built as guests are.
func Interpreter() Guest {
	language := c()
	language.Sources = []string{"{folder}/*.[ch]"}
	return Guest{Module: "../../pipeline/export/interpreter/policy.wasm", Env: "policy", Language: language, Committed: true}
}

//go:embed acrobot-c/acrobot.wasm cartpole-c/cartpole.wasm cartpole-c/cartpole_positions.wasm mountaincar-c/mountaincar.wasm
//go:embed chase-c/chase.wasm connectfour-c/connectfour.wasm snake-c/snake.wasm tag-c/tag.wasm
//go:embed minatar-c/*.wasm mountaincarcontinuous-c/mountaincarcontinuous.wasm pendulum-c/*.wasm sanity-c/*.wasm
//go:embed squash-c/squash.wasm taxi-c/taxi.wasm
var embedded embed.FS

// c has clang with lld, or the compiler of Zig from the project's own Python environment. The stack is below all data,
// so that an overflow traps and overwrites nothing; Zig does so by itself.
func c() Language {
	compiler := func(version []string, linker string, cc ...string) Compiler {
		return Compiler{
			Version: version,
			Probe:   append(slices.Clone(cc), "-nostdlib", "-Wl,--no-entry", "-x", "c", "-", "-o", "{module}"),
			Build: append(slices.Clone(cc), "-std=c11", "-O3", "-ffp-contract=off", "-nostdlib", "-msimd128", "-mbulk-memory",
				"-I", "{root}/sdk/c", "-Wl,--no-entry,-z,stack-size=65536,--strip-all"+linker, "{env}.c", "-o", "{module}"),
		}
	}
	clang := func(name string) Compiler {
		return compiler([]string{name, "--version"}, ",--stack-first", name, "--target=wasm32")
	}
	python := "{root}/.venv/bin/python"
	zig := compiler([]string{python, "-c", "import importlib.metadata as m; print('zig cc', m.version('ziglang'))"}, "",
		python, "-m", "ziglang", "cc", "-target", "wasm32-freestanding")
	return Language{
		Name:      "C",
		Sources:   []string{"sdk/c/*.h", "{folder}/*.c"},
		Compilers: []Compiler{clang("clang-19"), clang("clang"), zig},
	}
}

// cpp has clang with the C++ library for WASI, or the compiler of Zig, which has one.
func cpp() Language {
	compiler := func(version []string, linker string, cc ...string) Compiler {
		cc = append(cc, "-mexec-model=reactor", "-std=c++20", "-fno-exceptions", "-fno-rtti")
		return Compiler{
			Version: version,
			Probe:   append(slices.Clone(cc), "-include", "vector", "-x", "c++", "-", "-o", "{module}"),
			Build: append(slices.Clone(cc), "-O3", "-ffp-contract=off", "-msimd128", "-mbulk-memory", "-I", "{root}/sdk/c",
				"-Wl,-z,stack-size=65536,--strip-all"+linker, "{env}.cpp", "-o", "{module}"),
		}
	}
	clang := func(name string) Compiler {
		return compiler([]string{name, "--version"}, ",--stack-first", name, "--target=wasm32-wasi")
	}
	python := "{root}/.venv/bin/python"
	zig := compiler([]string{python, "-c", "import importlib.metadata as m; print('zig c++', m.version('ziglang'))"}, "",
		python, "-m", "ziglang", "c++", "-target", "wasm32-wasi")
	return Language{
		Name:      "C++",
		Sources:   []string{"sdk/c/*.h", "sdk/c/*.hpp", "{folder}/*.cpp", "{folder}/*.h"},
		Compilers: []Compiler{clang("clang++-19"), clang("clang++"), zig},
	}
}

// rust keeps the paths of this machine out of the module.
func rust() Language {
	const target = "wasm32-unknown-unknown"
	return Language{
		Name: "Rust",
		Sources: []string{"sdk/rust/Cargo.toml", "sdk/rust/src/*.rs",
			"{folder}/Cargo.toml", "{folder}/.cargo/config.toml", "{folder}/src/*.rs"},
		Compilers: []Compiler{{
			Version: []string{"rustc", "--version"},
			Probe:   []string{"rustc", "--target", target, "--crate-type", "lib", "--emit", "metadata", "-o", "{module}", "-"},
			Build: []string{"cargo", "build", "--quiet", "--offline", "--release", "--target", target, "--target-dir", "target",
				"--config", "target." + target + `.rustflags=["--remap-path-prefix={root}=rlhost"]`},
			Output: "target/" + target + "/release/{env}.wasm",
		}},
	}
}

// zig has the compiler of the project's own Python environment.
func zig() Language {
	python := "{root}/.venv/bin/python"
	build := func(args ...string) []string {
		return append([]string{python, "-m", "ziglang", "build-exe", "-target", "wasm32-freestanding", "-fno-entry", "-femit-bin={module}"}, args...)
	}
	return Language{
		Name:    "Zig",
		Sources: []string{"sdk/zig/*.zig", "sdk/c/*.h", "sdk/c/rl_guest.c", "{folder}/*.zig"},
		Compilers: []Compiler{{
			Version: []string{python, "-c", "import importlib.metadata as m; print('zig', m.version('ziglang'))"},
			Probe:   []string{python, "-m", "ziglang", "version"},
			Build: build("-mcpu=generic+simd128+bulk_memory", "-OReleaseFast", "-fstrip", "--dep", "rlhost", "-Mroot={env}.zig",
				"-I", "{root}/sdk/c", "-cflags", "-O3", "--", "{root}/sdk/c/rl_guest.c", "-Mrlhost={root}/sdk/zig/rlhost.zig"),
		}},
	}
}

// assemblyscript has the compiler that bench/languages.sh puts into the repository's cache.
func assemblyscript() Language {
	const node = "{root}/.cache/languages/node_modules"
	return Language{
		Name:    "AssemblyScript",
		Sources: []string{"sdk/assemblyscript/*.ts", "{folder}/*.ts"},
		Compilers: []Compiler{{
			Version: []string{node + "/.bin/asc", "--version"},
			Probe:   []string{node + "/.bin/asc", "--version"},
			Build: []string{node + "/.bin/asc", "{env}.ts", "-o", "{module}", "--path", node, "-O3", "--noAssert", "--runtime", "minimal",
				"--exportStart", "_initialize", "--use", "abort=~lib/rlhost-env/index/rlAbort"},
		}},
	}
}

// nim has the compiler of Nim, whose C clang compiles; see the page about other languages.
func nim() Language {
	compiler := func(clang string) Compiler {
		build := "made=$(mktemp -d) && trap 'rm -r $made' EXIT && cc='" + clang + " --target=wasm32 -O3 -ffp-contract=off -msimd128 -mbulk-memory' && " +
			"$cc -c {root}/sdk/c/rl_guest.c -o $made/rl_guest.o && nim c --compileOnly --noMain --os:any --cpu:wasm32 --gc:arc -d:useMalloc -d:danger " +
			"--exceptions:quirky --hints:off --nimcache:$made {env}.nim && $cc -nostdlib -Wl,--no-entry,--stack-first,-s " +
			"-I /usr/lib/nim/lib $made/@m{env}.nim.c $made/rl_guest.o -o {module}" // where Debian has nimbase.h
		return Compiler{Version: []string{"nim", "--version"}, Probe: []string{"sh", "-c", "nim --version && " + clang + " --version"}, Build: []string{"sh", "-euc", build}}
	}
	return Language{
		Name:      "Nim",
		Sources:   []string{"sdk/c/*.h", "sdk/c/rl_guest.c", "{folder}/*.nim"},
		Compilers: []Compiler{compiler("clang-19"), compiler("clang")},
	}
}

func golang() Language {
	return Language{
		Name:    "Go",
		Sources: []string{"sdk/*.go", "sdk/rlmath/*.go", "sdk/wasm/*.go", "sdk/internal/linear/*.go", "sdk/component/*.go", "sdk/component/module/*.go", "hostabi/*.go", "{folder}/*.go", "{folder}/{env}/*.go"},
		Compilers: []Compiler{{
			Version: []string{"go", "version"},
			Probe:   []string{"go", "version"},
			Build:   []string{"go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", "{module}", "."},
			Env:     []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"},
		}},
	}
}

// Builtins returns the embedded environments by name@version.
func Builtins() map[string][]byte {
	modules := map[string][]byte{}
	for _, g := range Guests() {
		if g.Builtin == "" {
			continue
		}
		module, err := embedded.ReadFile(g.Module)
		if err != nil {
			panic(err) // the directive at embedded lacks the row's module
		}
		modules[g.Builtin] = module
	}
	return modules
}
