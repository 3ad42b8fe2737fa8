package relay

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

var mistakes = []testkit.Mistake{
	{"a number is committed again", "receiver.go", "next := m.Number == r.committed.Blocks+1", "next := m.Number <= r.committed.Blocks+1"},
	{"commits out of order", "receiver.go", "next := m.Number == r.committed.Blocks+1", "next := m.Number > r.committed.Blocks"},
	{"no fence after the lease", "receiver.go", " || m.From == r.from && !r.open", ""},
	{"the receiver's incarnation is ignored", "receiver.go", "case m.To != r.own:", "case false:"},
	{"the sender's incarnation is ignored", "sender.go", "if m.From != s.from || m.To != s.to {", "if m.To != s.to {"},
	{"all kept blocks are sent again", "sender.go", "\t\ts.done(m.Number)\n\t\ts.queue", "\t\ts.queue"},
	{"blocks in doubt are sent to the next receiver", "sender.go", "\ts.doubtKept()\n\ts.previous", "\ts.queue = slices.Insert(s.queue, 0, s.kept...)\n\ts.kept = nil\n\ts.previous"},
	{"committed blocks stay kept", "sender.go", "\ts.kept = slices.Delete(s.kept, 0, n)\n", ""},
	{"no probe", "sender.go", "s.send(Message{Kind: Probe, Number: s.next - 1, Steps: s.given}, Block{})", "return"},
	{"a probe does not ask for a resend", "receiver.go", "r.ack(m.Number > r.committed.Blocks)", "r.ack(false)"},
	{"OPEN is sent once", "sender.go", "\tif s.opening {\n\t\ts.sendOpen()\n\t} else {", "\tif !s.opening {"},
	{"finals are not kept", "receiver.go", "\t\tr.finalOf, r.final = r.from, r.committed.Blocks\n", ""},
	{"a final is forgotten when another opens", "receiver.go", "\tr.port.Send(answer)\n", "\tr.port.Send(answer)\n\tr.finalOf, r.final = 0, 0\n"},
	{"a resend has wrong sums", "sender.go", "\t\tsum.add(b)\n\t\ts.send(Message{Kind: Data, Number: sum.Blocks, Steps: sum.Steps}, b)", "\t\ts.send(Message{Kind: Data, Number: sum.Blocks + 1, Steps: sum.Steps}, b)\n\t\tsum.add(b)"},
	{"what a dead sender had under way is not counted", "receiver.go", "\t\tr.port.Lost(r.owedOf, r.owed)\n", ""},
	{"what comes again is counted as lost", "receiver.go", "if previous == 0 || previous != r.owedOf && previous != r.from {", "if true {"},
	{"what an earlier incarnation owes is forgotten", "receiver.go", "\tr.take(r.owed)\n", ""},
}

// The simulation is worth what it finds.
func TestMistakes_AreFound(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("it builds the simulation for each mistake: make test-hosts")
	}
	testkit.FindsMistakes(t, "TestFaults_.*|TestReceiver_.*", []string{"RLHOST_FAULTS=10000", "RLHOST_SEED=1"}, mistakes)
}
