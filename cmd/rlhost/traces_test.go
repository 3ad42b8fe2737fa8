package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// stages returns the components of the first trace of a file that has a span of each stage, by stages, with a star where the span has no length.
func stages(t *testing.T, traces string) map[string][]string {
	t.Helper()
	type attribute struct {
		Key   string
		Value struct{ StringValue string }
	}
	for line := range strings.Lines(traces) {
		var trace struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						Name                               string
						StartTimeUnixNano, EndTimeUnixNano string
						Attributes                         []attribute
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &trace); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		found := map[string][]string{}
		for _, s := range trace.ResourceSpans[0].ScopeSpans[0].Spans {
			i := slices.IndexFunc(s.Attributes, func(a attribute) bool { return a.Key == "rlhost.component" })
			if i < 0 {
				continue
			}
			name := s.Attributes[i].Value.StringValue
			if s.StartTimeUnixNano >= s.EndTimeUnixNano { // both have 19 digits
				name += "*"
			}
			if !slices.Contains(found[s.Name], name) {
				found[s.Name] = append(found[s.Name], name)
				slices.Sort(found[s.Name])
			}
		}
		if len(found) == 4 {
			return found
		}
	}
	t.Errorf("no trace has a span of each stage:\n%s", traces)
	return nil
}

// Components in processes of their own have their spans in the traces of datasets.
func TestTraces_HaveSpansOfProcesses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("traced.toml", plain+`
[component.rollout]
runtime = "process"
[component.inference]
runtime = "process"
[component.batcher]
runtime = "process"
[component.learner]
runtime = "process"
lr_anneal_env_steps = 0
`)
	plain, traced := w.train("traced.toml"), w.train("traced.toml", "--set", "run.traces=traces.jsonl")
	if plain.ParamsHash != traced.ParamsHash {
		t.Errorf("parameters %s, with traces %s", plain.ParamsHash, traced.ParamsHash)
	}
	found := stages(t, w.read("runs/cartpole/0002/traces.jsonl"))
	for stage, component := range map[string]string{"rollout": "rollout", "batcher": "batcher", "learner": "learner", "inference": "inference"} {
		if got := strings.Join(found[stage], " "); strings.TrimSuffix(got, "*") != component || stage != "batcher" && strings.HasSuffix(got, "*") {
			t.Errorf("spans of the %s are of %q", stage, got)
		}
	}
}
