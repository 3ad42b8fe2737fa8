package search

import "testing"

// BenchmarkNext is one question to a search of 1,000 trials of which nearly all have ended.
func BenchmarkNext(b *testing.B) {
	for _, method := range []string{Halving, ASHA, Median} {
		b.Run(method, func(b *testing.B) {
			plan, records := recorded(b, method)
			h := NewHistory(plan.Config)
			for _, r := range records[:len(records)-3] {
				if err := h.Add(r); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := plan.Next(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFold reads the journal of a search of 1,000 trials.
func BenchmarkFold(b *testing.B) {
	plan, records := recorded(b, ASHA)
	var lines [][]byte
	for _, r := range records {
		line, err := r.Line()
		if err != nil {
			b.Fatal(err)
		}
		lines = append(lines, line)
	}
	for b.Loop() {
		h := NewHistory(plan.Config)
		for _, line := range lines {
			r, err := ReadRecord(line)
			if err != nil {
				b.Fatal(err)
			}
			if err := h.Add(r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// recorded returns the records of a whole search of 1,000 trials.
func recorded(b *testing.B, method string) (*Plan, []*Record) {
	b.Helper()
	c := Default()
	c.Space = map[string]Dim{"a.rate": bounds(1e-4, 1e-1, "log"), "b.rate": bounds(0, 1, "")}
	c.Method, c.Trials, c.EnvSteps, c.Rungs.Least, c.Confirm.Top = method, 1000, 64_000, 1000, 0
	if err := c.Complete(0); err != nil {
		b.Fatal(err)
	}
	plan, err := NewPlan(&c, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	h := NewHistory(&c)
	var records []*Record
	add := func(r *Record) {
		if err := h.Add(r); err != nil {
			b.Fatal(err)
		}
		records = append(records, r)
	}
	for {
		step, err := plan.Next(h)
		if err != nil {
			b.Fatal(err)
		}
		if step.Done {
			return plan, records
		}
		add(&Record{Orders: step.Orders})
		for _, t := range h.Owed() {
			o := Outcome{Trial: t.Trial, Rung: t.Rung, Seed: t.Seed, EnvSteps: t.Until}
			o.Judged(float64(t.Trial * 37 % 1000))
			add(&Record{Outcome: &o})
		}
	}
}
