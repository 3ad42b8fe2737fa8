package env

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// Other languages read these names. Keys for the host alone do not travel.
func TestSource_IsFlatJSONForOtherProcesses(t *testing.T) {
	s := Source{Name: "rollout", Use: "env.wasm", Args: map[string]string{"a.b": "1"}, Grants: []string{"log"},
		Limits: Limits{Memory: 1 << 20, Step: time.Second, Init: time.Minute, Compile: 2, CompileMemory: 3}}
	told := s
	told.SHA256, told.Runtime, told.Workers = "00", InProcess, 4
	doc, err := json.Marshal(&told)
	const want = `{"name":"rollout","use":"env.wasm","args":{"a.b":"1"},"memory":1048576,"step_ns":1000000000,` +
		`"init_ns":60000000000,"compile_ns":2,"compile_memory":3,"grants":["log"]}`
	if err != nil || string(doc) != want {
		t.Errorf("told\n%s, %v; want\n%s", doc, err, want)
	}
	var back Source
	if err := json.Unmarshal(doc, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("heard %+v, %v; want %+v", back, err, s)
	}
}

// A wrapper's module and its folder of data are found from the file's folder. Their content is in the digest, and not their paths.
func TestSource_WrappersNameAModuleAndItsData(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{"a.wasm": "module", "maps/level.txt": "1", "same/level.txt": "1", "other/level.txt": "2"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wrapped := func(data string) *Source {
		return &Source{Wrap: []Wrapper{{"time_limit": int64(5)}, {KeyUse: "./a.wasm", KeyData: data}}}
	}
	if there := wrapped("./maps").In(dir); there.Wrap[1][KeyUse] != filepath.Join(dir, "a.wasm") || there.Wrap[1][KeyData] != filepath.Join(dir, "maps") {
		t.Errorf("from another folder it is %v", there.Wrap)
	}
	digest := wrapped("maps").WrapDigest(dir)
	if wrapped("same").WrapDigest(dir) != digest || wrapped("other").WrapDigest(dir) == digest || wrapped("").WrapDigest(dir) == digest {
		t.Errorf("the digests are %q, %q, %q and %q", digest, wrapped("same").WrapDigest(dir), wrapped("other").WrapDigest(dir), wrapped("").WrapDigest(dir))
	}
}

// Where modules and data lie is left out of a list, but not the arguments of the same names.
func TestWithoutWrapPaths_KeepsArguments(t *testing.T) {
	text := func(use, data, arg string) string {
		return WithoutWrapPaths(WrapText([]Wrapper{{"time_limit": int64(5)}, {KeyUse: use, KeyData: data, "args": map[string]any{"data": arg, "use": arg}}}))
	}
	if a, b := text("a.wasm", "maps", "x"), text("b.wasm", "levels", "x"); a != b {
		t.Errorf("%s and %s differ, want the same without their paths", a, b)
	}
	if a, b := text("a.wasm", "maps", "x"), text("a.wasm", "maps", "y"); a == b {
		t.Errorf("%s is the same with other arguments", a)
	}
}
