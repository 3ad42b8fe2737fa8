package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

// A run is judged by one figure in its end event, in eval and by --require. The result of the other way to act is next to it.
func TestS8TrainAndEvalJudgeTheSame(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("pole.toml", plain)
	for greedy, judged := range map[bool]string{true: "greedy", false: "sampled"} {
		name := fmt.Sprintf("judged-%v", greedy)
		args := []string{"train", "pole.toml", "--json", "--set", "run.stop.env_steps=8192", "--set", "run.name=" + name,
			"--set", fmt.Sprintf("run.evaluation.greedy=%v", greedy)}
		var end struct {
			Return  float64            `json:"eval_return"`
			Judged  string             `json:"eval_judged"`
			Greedy  map[string]float64 `json:"eval_greedy"`
			Sampled map[string]float64 `json:"eval_sampled"`
		}
		if _, last := w.lastLine(args...); json.Unmarshal(last, &end) != nil {
			t.Fatalf("%s", last)
		}
		var again map[string]any
		if _, last := w.lastLine("eval", name, "--episodes", "4", "--json"); json.Unmarshal(last, &again) != nil {
			t.Fatalf("%s", last)
		}
		both := map[string]map[string]float64{"greedy": end.Greedy, "sampled": end.Sampled}
		if end.Return != both[judged]["mean_return"] || end.Judged != judged || again["judged"] != judged ||
			again["mean_return"] != end.Return || fmt.Sprint(again["greedy"]) != fmt.Sprint(end.Greedy) ||
			fmt.Sprint(again["sampled"]) != fmt.Sprint(end.Sampled) {
			t.Errorf("%s: training ends with %+v, eval says %v", judged, end, again)
		}
		between := (end.Greedy["mean_return"] + end.Sampled["mean_return"]) / 2
		want := exitRequire
		if end.Return > between {
			want = exitOK
		}
		if code, _ := w.lastLine(append(args, "--require", fmt.Sprintf("eval_return>=%g", between))...); code != want {
			t.Errorf("%s: greedy %v, sampled %v, --require of what is between them exits with %d, want %d", judged, end.Greedy,
				end.Sampled, code, want)
		}
	}
}
