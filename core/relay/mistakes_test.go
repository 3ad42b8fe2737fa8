package relay

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

var mistakes = []testkit.Mistake{
	{Name: "a number is committed again", File: "receiver.go", Right: "next := m.Number == r.committed.Blocks+1", Wrong: "next := m.Number <= r.committed.Blocks+1"},
	{Name: "commits out of order", File: "receiver.go", Right: "next := m.Number == r.committed.Blocks+1", Wrong: "next := m.Number > r.committed.Blocks"},
	{Name: "no fence after the lease", File: "receiver.go", Right: " || m.From == r.from && !r.open", Wrong: ""},
	{Name: "the receiver's incarnation is ignored", File: "receiver.go", Right: "case m.To != r.own:", Wrong: "case false:"},
	{Name: "the sender's incarnation is ignored", File: "sender.go", Right: "if m.From != s.from || m.To != s.to {", Wrong: "if m.To != s.to {"},
	{Name: "all kept blocks are sent again", File: "sender.go", Right: "\t\ts.done(m.Number)\n\t\ts.queue", Wrong: "\t\ts.queue"},
	{Name: "blocks in doubt are sent to the next receiver", File: "sender.go", Right: "\ts.doubtKept()\n\ts.previous", Wrong: "\ts.queue = slices.Insert(s.queue, 0, s.kept...)\n\ts.kept = nil\n\ts.previous"},
	{Name: "committed blocks stay kept", File: "sender.go", Right: "\ts.kept = slices.Delete(s.kept, 0, n)\n", Wrong: ""},
	{Name: "no probe", File: "sender.go", Right: "s.send(Message{Kind: Probe, Number: s.next - 1, Steps: s.given}, Block{})", Wrong: "return"},
	{Name: "a probe does not ask for a resend", File: "receiver.go", Right: "r.ack(m.Number > r.committed.Blocks)", Wrong: "r.ack(false)"},
	{Name: "OPEN is sent once", File: "sender.go", Right: "\tif s.opening {\n\t\ts.sendOpen()\n\t} else {", Wrong: "\tif !s.opening {"},
	{Name: "finals are not kept", File: "receiver.go", Right: "\t\tr.finalOf, r.final = r.from, r.committed.Blocks\n", Wrong: ""},
	{Name: "a final is forgotten when another opens", File: "receiver.go", Right: "\tr.port.Send(answer)\n", Wrong: "\tr.port.Send(answer)\n\tr.finalOf, r.final = 0, 0\n"},
	{Name: "the limit stays at a commit", File: "receiver.go", Right: "\t\tr.report(min(r.half(), 4))\n", Wrong: ""},
	{Name: "commits wait for more of them where blocks are free", File: "receiver.go", Right: "r.report(1)", Wrong: "r.report(4)"},
	{Name: "a sender that has reached its limit waits for half", File: "receiver.go", Right: " || grows > 0 && r.limit == r.committed.Blocks", Wrong: ""},
	{Name: "the limit waits until it is reached", File: "receiver.go", Right: " || grows >= r.half()", Wrong: ""},
	{Name: "a resend has wrong sums", File: "sender.go", Right: "\t\tsum.add(b)\n\t\ts.send(Message{Kind: Data, Number: sum.Blocks, Steps: sum.Steps}, b)", Wrong: "\t\ts.send(Message{Kind: Data, Number: sum.Blocks + 1, Steps: sum.Steps}, b)\n\t\tsum.add(b)"},
	{Name: "what a dead sender had under way is not counted", File: "receiver.go", Right: "\t\tr.port.Lost(r.owedOf, r.owed)\n", Wrong: ""},
	{Name: "what comes again is counted as lost", File: "receiver.go", Right: "if previous == 0 || previous != r.owedOf && previous != r.from {", Wrong: "if true {"},
	{Name: "what an earlier incarnation owes is forgotten", File: "receiver.go", Right: "\tr.take(r.owed)\n", Wrong: ""},
}

// The simulation is worth what it finds.
func TestMistakes_AreFound(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("it builds the simulation for each mistake: make test-hosts")
	}
	testkit.FindsMistakes(t, "TestFaults_.*|TestReceiver_.*", []string{"RLHOST_FAULTS=10000", "RLHOST_SEED=1"}, mistakes)
}
