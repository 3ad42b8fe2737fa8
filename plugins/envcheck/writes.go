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
	w := c.watch()
	for _, k := range checks() {
		found := ""
		switch k.id {
		case "M01":
			found = w.unwritten
		case "M02":
			found = w.beyond
		}
		if found != "" {
			return &Result{ID: k.id, Title: k.title, Verdict: Failed, Detail: found, Help: k.help}, true
		}
	}
	return nil, c.guardedErr == nil
}
