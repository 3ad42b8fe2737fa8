package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
)

// frozen are the columns of trajectories that the component ABI has frozen: name, type, rows, axes.
const frozen = `
action i32, f32 T env, agent, i
obs the environment's T+1 env, agent, i
reward f32 T env, agent
terminated u8 T env, agent
truncated u8 T env, agent
action_mask u8 T+1 env, agent, i
final_obs the environment's 1 env, agent, i
active u8 T+1 env, agent
info f32 T env, agent, i
discount f32 T env, agent
reset_param f32 1 env, agent, i
log_prob f32 T env, agent
value f32 T+1 env, agent
bootstrap_value f32 T env, agent
valid u8 T env, agent
policy_version u64, as i64 T+1 
plugin_version u64, as i64 T env, agent
shaped_reward f32 T env, agent
raw_action f32 T env, agent, i
age u8 T+1 env, agent
past_obs the environment's P env, agent, i
past_action i32, f32 P env, agent, i
past_reward f32 P env, agent
policy u8 T+1 env, agent
past_shaped_reward f32 P env, agent
executed_action i32, f32 T env, agent, i
past_executed_action i32, f32 P env, agent, i
played_version u64, as i64 T+1 env, agent
`

// A column of the frozen table keeps its name, type, rows and axes; others may be added.
func TestColumns_AreFrozenUnderTheirNames(t *testing.T) {
	got := "\n"
	for _, k := range trajectory.ColumnKinds() {
		got += strings.Join([]string{k.Name, typeOf(&k), rowsOf(&k), axesOf(&k)}, " ") + "\n"
	}
	for line := range strings.Lines(frozen) {
		if line != "\n" && !strings.Contains(got, "\n"+line) {
			t.Errorf("there is no column as it was frozen: %s", line)
		}
	}
}

// A mark without a table is an error, and so is a column without a description.
func TestWithTables_RefusesAnUnknownMark(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte("<!-- docs/generate: nothing -->\n<!-- end -->\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := withTables("page.md")(dir); err == nil || !strings.Contains(err.Error(), `no table "nothing"`) {
		t.Errorf("%v", err)
	}
}
