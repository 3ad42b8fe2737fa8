package module

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
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

// exporting makes a module with a section of exports, of functions with such names, and custom sections behind it.
func exporting(names []string, pairs ...string) []byte {
	content := []byte{byte(len(names))}
	for k, name := range names {
		content = append(append(append(content, byte(len(name))), name...), 0, byte(k))
	}
	file := append([]byte("\x00asm\x01\x00\x00\x00\x07"), byte(len(content)))
	return append(append(file, content...), sections(pairs...)[8:]...)
}

func TestLanguageOf_ReadsWhatSDKsExportAndCompilersNote(t *testing.T) {
	clang := "\x01\x0cprocessed-by\x01\x05clang\x0622.1.8"
	for name, c := range map[string]struct {
		file []byte
		want Language
	}{
		"clang":                        {sections("name", "x", "producers", clang), C},
		"Rust":                         {sections("producers", "\x02\x08language\x01\x04Rust\x00\x0cprocessed-by\x02\x05rustc\x061.80.0\x05clang\x0218"), Rust},
		"Go":                           {sections("go:buildid", "x", "producers", "\x02\x08language\x01\x02Go\x08go1.26.8\x0cprocessed-by\x01\x0eGo cmd/compile\x08go1.26.8"), Go},
		"the SDK of Zig":               {exporting([]string{"rl_env_v1", "rl_sdk_object", "rl_sdk_zig"}, "producers", clang), Zig},
		"the object alone":             {exporting([]string{"rl_sdk_object", "rl_env_v1"}, "producers", clang), Object},
		"the SDK of AssemblyScript":    {exporting([]string{"rl_env_v1", "rl_sdk_assemblyscript"}), AssemblyScript},
		"the SDK of C":                 {exporting([]string{"rl_sdk_c"}), C},
		"the SDK of C++":               {exporting([]string{"rl_sdk_cpp"}, "producers", clang), CPP},
		"the SDK of Go":                {exporting([]string{"rl_sdk_go"}), Go},
		"the SDK of Rust":              {exporting([]string{"rl_sdk_rust"}), Rust},
		"an SDK that is not ours":      {exporting([]string{"rl_sdk_odin"}), ""},
		"one over clang":               {exporting([]string{"rl_sdk_odin"}, "producers", clang), C},
		"a name that ends alike":       {exporting([]string{"my_rl_sdk_rust", "rl_sdk_rusty"}), ""},
		"a name in a text":             {sections("name", "rl_sdk_rust\x00"), ""},
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
	for l, want := range map[Language]string{
		"": every, C: "correct the fields of RL_ENV, or what rl_describe writes without the SDK, or the arguments", Rust: "correct what Env::spec returns, or the arguments",
		CPP: "correct the fields of RL_CLASS or RL_ENV, or the arguments", Object: "correct what rl_guest_describe calls, or the arguments",
		AssemblyScript: "correct the calls that follow environment<Type>(…), or the arguments",
	} {
		if got := l.Describes(); got != want {
			t.Errorf("%q: %q, want %q", l, got, want)
		}
	}
	const both = ", in C and C++ with -mno-tail-call, in Rust with -C target-feature=-tail-call"
	for l, want := range map[Language]string{"": both, Go: both, C: ": with -mno-tail-call", CPP: ": with -mno-tail-call", Object: ": with -mno-tail-call", Rust: ": with -C target-feature=-tail-call"} {
		if got := l.without("tail calls"); got != want {
			t.Errorf("%q: %q, want %q", l, got, want)
		}
	}
	if got := AssemblyScript.without("shared memory (threads)"); got != ": without --sharedMemory" {
		t.Errorf("of AssemblyScript: %q", got)
	}
	if got := Language("").without("garbage-collected types"); !strings.HasPrefix(got, ", in a language that brings its own collector, such as Go") {
		t.Errorf("without a collector: %q", got)
	}
	if got := C.without("a feature of next year"); got != "" {
		t.Errorf("of a feature that no compiler writes: %q", got)
	}
}

// The language of a guest is known from its module without a single custom section, which is the most that tools strip.
func TestLanguageOf_SurvivesStripping(t *testing.T) {
	dir := t.TempDir()
	for _, g := range plugins.Guests() {
		want := Language(g.Language.Name)
		switch {
		case g.Name() == "cartpole-nim":
			want = Object
		case g.Env != "corridor" && g.Env != "shaper", testing.Short() && !g.Committed: // one of each language, and one of components
			continue
		}
		file, err := testkit.Guest(g, dir)
		if errors.Is(err, plugins.ErrNoCompiler) {
			t.Log(err)
			continue
		}
		must(t, err)
		content, err := os.ReadFile(file)
		must(t, err)
		stays := filepath.Join(dir, "stripped.wasm")
		must(t, os.WriteFile(stays, stripped(content), 0o644))
		r, err := Inspect(stays)
		must(t, err)
		if r.Language != want || len(r.Findings) > 0 || !strings.Contains(r.String(), " ABI 1, in "+string(want)+";") {
			t.Errorf("%s, want in %q: %v", g.Name(), want, r)
		}
	}
}

// stripped is a module without its custom sections.
func stripped(file []byte) []byte {
	kept, rest := slices.Clone(file[:8]), file[8:]
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest[1:])
		whole := 1 + n + int(size)
		if rest[0] != customSection {
			kept = append(kept, rest[:whole]...)
		}
		rest = rest[whole:]
	}
	return kept
}
