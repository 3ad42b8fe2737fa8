package players

import (
	"encoding/json"
	"strings"
	"testing"
)

// An evaluation says the mean return of each agent that has a name, of the way of acting that is judged, in text and in JSON.
func TestEvaluation_SaysWhatNamedAgentsGot(t *testing.T) {
	e := &Evaluation{JudgesGreedy: true, Episodes: 2,
		Greedy:  Played{Return: 3.5, Returns: []float64{3, 4}, Agents: map[string]float64{"bob": 5, "ann": 2}},
		Sampled: Played{Return: 1, Returns: []float64{1, 1}, Agents: map[string]float64{"bob": 1, "ann": 1}}}
	if got := e.String(); !strings.HasSuffix(got, "; ann 2; bob 5") {
		t.Errorf("it says %q, want the names in order at its end", got)
	}
	if doc, err := json.Marshal(e.Greedy); err != nil || !strings.Contains(string(doc), `"agents":{"ann":2,"bob":5}`) {
		t.Errorf("its JSON is %s, %v", doc, err)
	}
	e.Greedy.Agents = nil
	if got := e.String(); strings.Contains(got, "ann") {
		t.Errorf("without names it says %q", got)
	}
}
