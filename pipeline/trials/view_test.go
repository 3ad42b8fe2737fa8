package trials

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/search"
)

func TestConclusion_SaysWhatKeysExplain(t *testing.T) {
	t.Parallel()
	trends := []float64{-0.61, 0.18, 0.5}
	c := Conclusion{ranked: 64, Keys: []search.Influence{{Key: "a.rate", Share: 0.584, Trend: &trends[0]}, {Key: "b.kind", Share: 0.1}, {Key: "c.size", Share: 0.04, Trend: &trends[1]}, {Key: "d.size", Trend: &trends[2]}},
		Best: &Row{Value: new(float64)}}
	want := `what each key alone explains of the order of 64 trials:
  58 %  a.rate  higher is worse, rank correlation -0.61
  10 %  b.kind
   4 %  c.size  no clear direction, rank correlation +0.18
   0 %  d.size  higher is better, rank correlation +0.50
`
	if got := c.Text(); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant at its end\n%s", got, want)
	}
}
