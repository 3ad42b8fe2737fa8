package probe

import (
	"math"
	"testing"
)

// Every probe comes to what is known of it, in synchronous mode and in one of the others; make test-learn trains them all in all.
func TestTrain_LearnsWhatIsKnown(t *testing.T) {
	modes := Modes()
	for i, p := range All() {
		for _, m := range []Mode{modes[0], modes[1+i%(len(modes)-1)]} {
			t.Run(p.Name+"/"+m.Name, func(t *testing.T) {
				t.Parallel()
				found, err := p.Train(t.Context(), m, 1)
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range p.Known {
					if math.Abs(found[i]-k.Theory) > Tolerance*math.Abs(k.Theory) {
						t.Errorf("%s = %.4f, want %.4f", k.What, found[i], k.Theory)
					}
				}
			})
		}
	}
}
