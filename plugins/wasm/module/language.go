package module

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// Language is what a module was written in, as far as the module says. The zero value is not known.
type Language string

// Languages that can be told apart.
const (
	AssemblyScript Language = "AssemblyScript"
	C              Language = "C" // and what else is compiled by clang without an SDK of ours
	CPP            Language = "C++"
	Go             Language = "Go"
	Object         Language = "a language over rl_guest.h"
	Rust           Language = "Rust"
	Zig            Language = "Zig"
)

// marks has the names under which the SDKs' modules export their language. Zig's SDK stands on the object, so that it comes first.
var marks = []struct {
	name     string
	language Language
}{
	{"zig", Zig}, {"object", Object}, {"assemblyscript", AssemblyScript}, {"c", C}, {"cpp", CPP}, {"go", Go}, {"rust", Rust},
}

// languageOf returns the language of a module. The SDKs' modules say it by an export, which no tool strips; of others, compilers have noted
// themselves in the section producers. Nothing depends on it but words.
func languageOf(file []byte) Language {
	exports := section(file, exportSection, "")
	for _, m := range marks {
		name := hostabi.ExportSDKPrefix + m.name
		if bytes.Contains(exports, append([]byte{byte(len(name))}, name+"\x00"...)) { // a function
			return m.language
		}
	}
	producers := section(file, customSection, "producers")
	switch {
	case bytes.Contains(producers, []byte("rustc")):
		return Rust
	case bytes.Contains(producers, []byte("Go cmd/compile")):
		return Go
	case bytes.Contains(producers, []byte("clang")):
		return C
	}
	return ""
}

// Numbers of sections.
const (
	customSection = 0
	exportSection = 7
)

// section returns the content of a section, nil if there is none: of a custom one that with the name, behind it.
func section(file []byte, kind byte, name string) []byte {
	const head = 8 // of the file
	for rest := file[min(head, len(file)):]; len(rest) > 0; {
		found := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil
		}
		content := rest[1+n:][:size]
		rest = rest[1+n+int(size):]
		if found != kind {
			continue
		}
		if kind != customSection {
			return content
		}
		length, n := binary.Uvarint(content)
		if n > 0 && length <= uint64(len(content)-n) && string(content[n:][:length]) == name {
			return content[n+int(length):]
		}
	}
	return nil
}

// description says where the SDK of each language has the description of an environment.
var description = map[Language]string{
	AssemblyScript: "the calls that follow environment<Type>(…)",
	C:              "the fields of RL_ENV, or what rl_describe writes without the SDK",
	CPP:            "the fields of RL_CLASS or RL_ENV",
	Go:             "the sdk.Spec that wasm.Serve is given",
	Object:         "what rl_guest_describe calls",
	Rust:           "what Env::spec returns",
	Zig:            "the declarations of the struct, such as obs, action and args",
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
	in        string // the languages, as a text
	how       string
	languages []Language
}

// clang's languages.
var clang = []Language{C, CPP, Object}

// ways has, for each feature, the languages whose compilers write it.
var ways = map[string][]way{
	"exception handling":          {{"C++", "with -fno-exceptions", clang}, {"Rust", `with panic = "abort"`, []Language{Rust}}},
	"tail calls":                  {{"C and C++", "with -mno-tail-call", clang}, {"Rust", "with -C target-feature=-tail-call", []Language{Rust}}},
	"relaxed SIMD":                {{"C and C++", "with -mno-relaxed-simd", clang}, {"Rust", "with -C target-feature=-relaxed-simd", []Language{Rust}}},
	"atomic operations (threads)": {{"C and C++", "without -pthread and -matomics", clang}, {"Rust", "without the target feature atomics", []Language{Rust}}},
	"shared memory (threads)": {{"C and C++", "without -pthread and --shared-memory", clang},
		{"AssemblyScript", "without --sharedMemory", []Language{AssemblyScript}}},
	"several memories":        {{"C and C++", "with -mno-multimemory", clang}, {"Rust", "with -C target-feature=-multimemory", []Language{Rust}}},
	"64-bit memory":           {{"C and C++", "with --target=wasm32", clang}, {"Rust", "for wasm32-unknown-unknown", []Language{Rust}}},
	"garbage-collected types": {{in: "a language that brings its own collector,", how: "such as Go or AssemblyScript, or that needs none"}},
}

// without says how a module is built without a feature: in its own language where that is known and has a way, else in each.
func (l Language) without(feature string) string {
	all := ""
	for _, w := range ways[feature] {
		if slices.Contains(w.languages, l) {
			return ": " + w.how
		}
		all += ", in " + w.in + " " + w.how
	}
	return all
}
