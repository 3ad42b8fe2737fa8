package module

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sections makes a module of custom sections.
func sections(pairs ...string) []byte {
	file := []byte("\x00asm\x01\x00\x00\x00")
	for k := 0; k < len(pairs); k += 2 {
		name, content := pairs[k], pairs[k+1]
		file = append(file, 0, byte(1+len(name)+len(content)), byte(len(name)))
		file = append(append(file, name...), content...)
	}
	return file
}

func TestLanguageOf_ReadsWhatCompilersNote(t *testing.T) {
	clang := "\x01\x0cprocessed-by\x01\x05clang\x0622.1.8"
	for name, c := range map[string]struct {
		file []byte
		want Language
	}{
		"clang":                        {sections("name", "x", "producers", clang), C},
		"Rust":                         {sections("producers", "\x02\x08language\x01\x04Rust\x00\x0cprocessed-by\x02\x05rustc\x061.80.0\x05clang\x0218"), Rust},
		"Go":                           {sections("go:buildid", "x", "producers", "\x02\x08language\x01\x02Go\x08go1.26.8\x0cprocessed-by\x01\x0eGo cmd/compile\x08go1.26.8"), Go},
		"Zig":                          {sections(".debug_str", "sdk/zig/rlhost.zig", "producers", clang), Zig},
		"another":                      {sections("producers", "\x01\x08language\x01\x02F#\x00"), ""},
		"stripped":                     {sections("name", clang), ""},
		"nothing":                      {nil, ""},
		"a head":                       {sections(), ""},
		"cut off in a section":         {sections("producers", clang)[:20], ""},
		"cut off in a length":          {append(sections(), 0, 0xff), ""},
		"a name longer than it may be": {append(sections(), 0, 2, 9, 'p'), ""},
		"no custom section":            {append(sections(), 1, byte(1+9+len(clang)), 9), ""},
	} {
		if got := languageOf(c.file); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLanguage_NamesItsOwnRemedy(t *testing.T) {
	const every = "correct what the guest's rl_describe writes, or its arguments; rlhost explain E018 says where each SDK has it"
	for l, want := range map[Language]string{"": every, C: "correct the fields of RL_ENV, or what rl_describe writes without the SDK, or the arguments", Rust: "correct what Env::spec returns, or the arguments"} {
		if got := l.Describes(); got != want {
			t.Errorf("%q: %q, want %q", l, got, want)
		}
	}
	const both = ", in C and C++ with -mno-tail-call, in Rust with -C target-feature=-tail-call"
	for l, want := range map[Language]string{"": both, Go: both, C: ": with -mno-tail-call", Rust: ": with -C target-feature=-tail-call"} {
		if got := l.without("tail calls"); got != want {
			t.Errorf("%q: %q, want %q", l, got, want)
		}
	}
	if got := Language("").without("garbage-collected types"); !strings.HasPrefix(got, ", in a language that brings its own collector, such as Go") {
		t.Errorf("without a collector: %q", got)
	}
	if got := C.without("a feature of next year"); got != "" {
		t.Errorf("of a feature that no compiler writes: %q", got)
	}
}

// A module that Go has built says so, stripped as the pages build it.
func TestLanguageOf_AModuleOfGo(t *testing.T) {
	out := filepath.Join(t.TempDir(), "corridor.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, ".")
	build.Dir, build.Env = "../../../examples/plugins/corridor-go", append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	content, err := os.ReadFile(out)
	if err != nil || languageOf(content) != Go {
		t.Errorf("%q, %v", languageOf(content), err)
	}
}
