package module

import (
	"bytes"
	"encoding/binary"
)

// Language is what a module was written in, as far as the module says: compilers note themselves in its section producers, unless it is
// stripped. The zero value is not known.
type Language string

// Languages that can be told apart.
const (
	C    Language = "C" // and what else is compiled by clang: C++, and languages that are translated to C
	Go   Language = "Go"
	Rust Language = "Rust"
	Zig  Language = "Zig"
)

// languageOf returns the language of a module. Nothing depends on it but the words of remedies.
func languageOf(file []byte) Language {
	producers := section(file, "producers")
	switch {
	case producers == nil:
		return ""
	case bytes.Contains(producers, []byte("rustc")):
		return Rust
	case bytes.Contains(producers, []byte("Go cmd/compile")):
		return Go
	case bytes.Contains(producers, []byte("clang")) && bytes.Contains(file, []byte("rlhost.zig")): // its half of the SDK that is in C notes clang
		return Zig
	case bytes.Contains(producers, []byte("clang")):
		return C
	}
	return ""
}

// section returns the content of a custom section, nil if there is none.
func section(file []byte, name string) []byte {
	const head = 8 // of the file
	for rest := file[min(head, len(file)):]; len(rest) > 0; {
		kind := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil
		}
		content := rest[1+n:][:size]
		rest = rest[1+n+int(size):]
		length, n := binary.Uvarint(content)
		if kind == 0 && n > 0 && length <= uint64(len(content)-n) && string(content[n:][:length]) == name {
			return content[n+int(length):]
		}
	}
	return nil
}

// description says where the SDK of each language has the description of an environment.
var description = map[Language]string{
	C:    "the fields of RL_ENV, or what rl_describe writes without the SDK",
	Go:   "the sdk.Spec that wasm.Serve is given",
	Rust: "what Env::spec returns",
	Zig:  "the declarations of the struct, such as obs, action and args",
}

// Describes says how a description is corrected: in the module's own language where that is known.
func (l Language) Describes() string {
	if own, ok := description[l]; ok {
		return "correct " + own + ", or the arguments"
	}
	return "correct what the guest's rl_describe writes, or its arguments; rlhost explain E018 says where each SDK has it"
}

// way is how a module is built without a feature of WebAssembly.
type way struct {
	in       string // the languages, as a text
	language Language
	how      string
}

// ways has, for each feature, the languages whose compilers write it.
var ways = map[string][]way{
	"exception handling":          {{"C++", C, "with -fno-exceptions"}, {"Rust", Rust, `with panic = "abort"`}},
	"tail calls":                  {{"C and C++", C, "with -mno-tail-call"}, {"Rust", Rust, "with -C target-feature=-tail-call"}},
	"relaxed SIMD":                {{"C and C++", C, "with -mno-relaxed-simd"}, {"Rust", Rust, "with -C target-feature=-relaxed-simd"}},
	"atomic operations (threads)": {{"C and C++", C, "without -pthread and -matomics"}, {"Rust", Rust, "without the target feature atomics"}},
	"shared memory (threads)":     {{"C and C++", C, "without -pthread and --shared-memory"}, {"AssemblyScript", "", "without --sharedMemory"}},
	"several memories":            {{"C and C++", C, "with -mno-multimemory"}, {"Rust", Rust, "with -C target-feature=-multimemory"}},
	"64-bit memory":               {{"C and C++", C, "with --target=wasm32"}, {"Rust", Rust, "for wasm32-unknown-unknown"}},
	"garbage-collected types":     {{"a language that brings its own collector,", "", "such as Go or AssemblyScript, or that needs none"}},
}

// without says how a module is built without a feature: in its own language where that is known and has a way, else in each.
func (l Language) without(feature string) string {
	all := ""
	for _, w := range ways[feature] {
		if l != "" && w.language == l {
			return ": " + w.how
		}
		all += ", in " + w.in + " " + w.how
	}
	return all
}
