package learner

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// config is the component's table. ppo.Config documents the keys.
type config struct {
	Policy             string  `toml:"policy"` // name of a [policy] table
	LearningRate       float64 `toml:"learning_rate"`
	AnnealEnvSteps     uint64  `toml:"anneal_env_steps"` // learning rate falls to 0 over these; 0 = constant
	AnnealClip         bool    `toml:"anneal_clip"`      // clip falls with the learning rate
	Gamma              float64 `toml:"gamma"`
	GAELambda          float64 `toml:"gae_lambda"`
	Clip               float64 `toml:"clip"`
	Epochs             int     `toml:"epochs"`
	Minibatch          int     `toml:"minibatch"` // most rows of an optimiser step
	Entropy            float64 `toml:"entropy"`
	ValueCoef          float64 `toml:"value_coef"` // of 1/2 MSE
	ValueClip          float64 `toml:"value_clip"`
	MaxGradNorm        float64 `toml:"max_grad_norm"`
	ClipGradApart      bool    `toml:"clip_grad_apart"` // actor and critic each by its own norm, unless they share parameters
	NormalizeAdvantage bool    `toml:"normalize_advantage"`
	TargetKL           float64 `toml:"target_kl"`
	VTrace             bool    `toml:"vtrace"`
	RhoBar             float64 `toml:"rho_bar"`
	CBar               float64 `toml:"c_bar"`
	Recompute          string  `toml:"recompute"`
	AdamEps            float64 `toml:"adam_eps"`
}

func defaults() config {
	d := ppo.Defaults()
	return config{
		LearningRate: 2.5e-4, Clip: 0.2, Entropy: 0.01,
		Gamma: d.Gamma, GAELambda: d.GAELambda, Epochs: d.Epochs, Minibatch: d.Minibatch,
		ValueCoef: d.ValueCoef, MaxGradNorm: d.MaxGradNorm, NormalizeAdvantage: d.NormalizeAdvantage,
		RhoBar: d.RhoBar, CBar: d.CBar, Recompute: d.Recompute, AdamEps: d.AdamEps,
	}
}

// algorithm returns the backend's settings.
func (c *config) algorithm() ppo.Config {
	a := ppo.Defaults()
	a.Epochs, a.Minibatch = c.Epochs, c.Minibatch
	a.Gamma, a.GAELambda = c.Gamma, c.GAELambda
	a.ValueCoef, a.ValueClip = c.ValueCoef, c.ValueClip
	a.MaxGradNorm, a.NormalizeAdvantage, a.TargetKL = c.MaxGradNorm, c.NormalizeAdvantage, c.TargetKL
	a.ClipGradApart = c.ClipGradApart
	a.VTrace, a.RhoBar, a.CBar, a.Recompute = c.VTrace, c.RhoBar, c.CBar, c.Recompute
	a.AdamEps = c.AdamEps
	return a
}

// rates returns the hyper-parameters at an env step.
func (c *config) rates(envSteps uint64) ppo.Rates {
	left := 1.0
	if c.AnnealEnvSteps > 0 {
		left = max(0, 1-float64(envSteps)/float64(c.AnnealEnvSteps))
	}
	r := ppo.Rates{LearningRate: float32(c.LearningRate * left), Clip: float32(c.Clip), Entropy: float32(c.Entropy)}
	if c.AnnealClip {
		r.Clip = float32(c.Clip * left)
	}
	return r
}

func (c *config) validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)})
	}
	if c.Policy == "" {
		bad("policy", "is missing, name one of the [policy] tables")
	}
	between := func(key string, value, lo, hi float64) {
		if !(value >= lo && value <= hi) {
			bad(key, "is %g, want %g to %g", value, lo, hi)
		}
	}
	between("learning_rate", c.LearningRate, 0, 1)
	between("gamma", c.Gamma, 0, 1)
	between("gae_lambda", c.GAELambda, 0, 1)
	between("clip", c.Clip, 1e-6, 10)
	between("epochs", float64(c.Epochs), 1, 1000)
	between("minibatch", float64(c.Minibatch), 1, 1<<24)
	between("entropy", c.Entropy, 0, 10)
	between("value_coef", c.ValueCoef, 0, 100)
	between("value_clip", c.ValueClip, 0, 1e6)
	between("max_grad_norm", c.MaxGradNorm, 0, 1e6)
	between("target_kl", c.TargetKL, 0, 100)
	between("rho_bar", c.RhoBar, 1e-6, 1e6)
	between("c_bar", c.CBar, 1e-6, 1e6)
	between("adam_eps", c.AdamEps, 1e-12, 1)
	if c.Recompute != "dataset" && c.Recompute != "epoch" {
		bad("recompute", "is %q, want dataset or epoch", c.Recompute)
	}
	return errors.Join(errs...)
}
