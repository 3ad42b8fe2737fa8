package rollout

import (
	"strings"
	"testing"
)

// outcomes is what becomes of environments that fail, with the cases that depend on the host: an error that is not the environments' own,
// and memory that they lack for good. Each situation is in one row; * is any value.
const outcomes = `
fault way      beside probation futile restarts   outcome
*     goesBack no     *         *      *          previousStepIn
yes   goesOver no     *         *      *          nextStepIn
no    goesOver no     *         *      *          runFails
no    stays    no     *         *      *          runFails
no    *        yes    *         *      *          runFails
yes   stays    no     yes       *      *          ownerReplaces
yes   *        yes    yes       *      *          ownerReplaces
yes   stays    no     no        yes    *          runFails
yes   stays    no     no        no     yes        beginAnew
yes   stays    no     no        no     no         noRestarts
yes   *        yes    no        *      *          noRestarts
`

func TestOutcome_IsThatOfTheTable(t *testing.T) {
	names := map[outcome]string{runFails: "runFails", noRestarts: "noRestarts", ownerReplaces: "ownerReplaces", nextStepIn: "nextStepIn",
		previousStepIn: "previousStepIn", beginAnew: "beginAnew"}
	text := map[bool]string{true: "yes", false: "no"}
	rows := strings.Split(strings.TrimSpace(outcomes), "\n")[1:]
	for bits := range 1 << 5 {
		bit := func(k int) bool { return bits>>k&1 != 0 }
		for w, name := range []string{stays: "stays", goesOver: "goesOver", goesBack: "goesBack"} {
			x := situation{fault: bit(0), way: way(w), beside: bit(1), probation: bit(2), futile: bit(3), restarts: bit(4)}
			values := []string{text[x.fault], name, text[x.beside], text[x.probation], text[x.futile], text[x.restarts]}
			var want []string
			for _, row := range rows {
				if f := strings.Fields(row); fits(f, values) {
					want = append(want, f[len(values)])
				}
			}
			if got := names[x.outcome()]; len(want) != 1 || want[0] != got {
				t.Errorf("%+v leads to %s; the table has the rows %v for it", x, got, want)
			}
		}
	}
}

// fits reports whether a row of the table matches some values.
func fits(row, values []string) bool {
	for i, v := range values {
		if row[i] != "*" && row[i] != v {
			return false
		}
	}
	return true
}
