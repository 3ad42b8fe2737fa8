package plugintest

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Options are the extent of the tests.
type Options struct {
	Envs  int    // in a batch; default 5, which no vector width divides
	Steps int    // of each trace; default 300
	Seed  uint64 // of environments and actions
}

func (o Options) withDefaults(spec hostabi.EnvSpec) Options {
	if o.Envs == 0 {
		o.Envs = 5
	}
	if spec.MaxEnvs > 0 {
		o.Envs = min(o.Envs, spec.MaxEnvs)
	}
	if o.Steps == 0 {
		o.Steps = 300
	}
	return o
}

// check is one promise of env.Env. A check that does not apply to this environment returns errSkipped.
type check struct {
	name string
	run  func(*kit) error
}

func checks() []check {
	return []check{
		{"describes itself", (*kit).describes},
		{"the same seeds give the same steps", (*kit).repeats},
		{"a reset with seeds forgets what was before", (*kit).forgets},
		{"batches do not know of each other", (*kit).independent},
		{"environments do not know of each other", (*kit).separate},
		{"blocks can be switched between any two steps", (*kit).switches},
		{"blocks of one index can lie in several files", (*kit).relocates},
		{"a masked reset touches no other environment", (*kit).maskedReset},
		{"both layouts give the same steps", (*kit).layouts},
		{"autoreset modes agree on real steps", (*kit).modes},
		{"a renewed batch is like a new one", (*kit).renews},
		{"a snapshot gives the same future", (*kit).snapshots},
		{"the state of one environment can be moved", (*kit).moves},
		{"what is out of range is refused", (*kit).refuses},
		{"a step allocates nothing", (*kit).allocates},
	}
}

// TestEnv tests that the environments of a plugin keep the promises of env.Env, each in its own test. It does not close the plugin.
func TestEnv(t *testing.T, p env.Plugin, o Options) {
	k := newKit(p, o)
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			err := c.run(k)
			if errors.Is(err, errSkipped) {
				t.Skip("this environment does not offer it")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
