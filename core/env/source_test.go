package env

import (
	"encoding/json"
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
