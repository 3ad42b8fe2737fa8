package inference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// costly is an actor whose calls take a time, as one over a slow bus does.
type costly struct {
	policy.Actor
	cost time.Duration
}

func (c *costly) Act(requests []policy.Request) error {
	time.Sleep(c.cost)
	return c.Actor.Act(requests)
}

// BenchmarkInference_MinRows answers 16 requesters, whose environments then take a step of a drawn time, log-uniform, and ask again.
func BenchmarkInference_MinRows(b *testing.B) {
	const requesters = 16
	for _, of := range []struct{ cost, least, most time.Duration }{
		{0, 100 * time.Microsecond, 10 * time.Millisecond},
		{5 * time.Millisecond, 100 * time.Microsecond, 10 * time.Millisecond},
		{5 * time.Millisecond, 100 * time.Microsecond, time.Millisecond},
	} {
		for _, part := range []int{0, 3, 2, 1} {
			minRows := 1
			if part > 0 {
				minRows = requesters * envs / part
			}
			b.Run(fmt.Sprintf("call=%v/steps=%v-%v/min_rows=%d", of.cost, of.least, of.most, minRows), func(b *testing.B) {
				r := newRig(b, New(), requesters, 1024)
				c := r.component.(*Inference)
				c.config.MinRows = minRows
				r.publish(b, r.network, 1)
				r.MustSettle()
				c.now.actor = &costly{c.now.actor, of.cost}
				draw := rand.New(rand.NewPCG(1, 2))
				answers := 0
				r.replied = func(m *hostabi.Message) {
					answers++
					step := float64(of.least) * math.Pow(float64(of.most)/float64(of.least), draw.Float64())
					again := trajectory.ActRequest{Block: m.Handle, T: 1, Step: 101}.Message()
					r.Host.Receiver.After(time.Duration(step), func() { _ = r.act.Emit(again) })
				}
				for i := range requesters {
					r.ask(b, i, 1, nil)
				}
				began := time.Now()
				r.MustRun(func() bool { return answers >= b.N })
				b.ReportMetric(float64(answers)/time.Since(began).Seconds(), "answers/s")
			})
		}
	}
}
