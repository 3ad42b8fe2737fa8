package envcheck

import (
	"context"
	"time"

	"github.com/rlhost/rlhost/core/env"
)

// Writes makes the checks of an environment's output, M01 and M02, with as many steps as there is time for. It returns the first that
// failed, or nil. done reports whether they have been made; they are not where the environment fails by itself, or takes more memory than
// they may have.
func Writes(ctx context.Context, p env.Plugin, o Options, within time.Duration) (failed *Result, done bool) {
	if CheckMemory(p, o) != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*within) // a step that takes longer is cut
	defer cancel()
	c := &checker{ctx: ctx, plugin: p, spec: p.Spec(), o: o, until: time.Now().Add(within)}
	c.o.setDefaults(&c.spec)
	failed = c.firstWrong(false)
	return failed, failed != nil || c.guardedErr == nil
}

// Brief makes the checks of a new version that is waited for: it steps (A01), writes every element (M01) and nothing else (M02), as far as
// there is time. It returns the first that failed, or nil. A call that takes longer than twice the time is cut: then nothing is proven.
func Brief(ctx context.Context, p env.Plugin, o Options, within time.Duration) (failed *Result, cut bool) {
	if CheckMemory(p, o) != nil {
		return nil, true
	}
	limited, cancel := context.WithTimeout(ctx, 2*within)
	defer cancel()
	c := &checker{ctx: limited, plugin: p, spec: p.Spec(), o: o, until: time.Now().Add(within)}
	c.o.setDefaults(&c.spec)
	failed = c.firstWrong(true)
	return failed, failed == nil && c.guardedErr != nil
}

// firstWrong makes the watched run, and returns the first check that it fails: of what is written, and with faults also of the run itself.
func (k *checker) firstWrong(faults bool) *Result {
	w := k.watch()
	found := map[string]string{"M01": w.unwritten, "M02": w.beyond}
	if faults && k.guardedErr != nil && k.ctx.Err() == nil {
		found["A01"] = k.guardedErr.Error()
	}
	for _, c := range checks() {
		if text := found[c.id]; text != "" {
			return &Result{ID: c.id, Title: c.title, Verdict: Failed, Detail: text, Help: c.help}
		}
	}
	return nil
}
