package learner

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// config is the component's table.
type config struct {
	Policy           string  `toml:"policy" doc:"Policy that it trains." range:"a [policy] table" default:"required"`
	LearningRate     float64 `toml:"learning_rate" doc:"Learning rate of Adam." range:"0 to 1"`
	LRAnnealEnvSteps uint64  `toml:"lr_anneal_env_steps" doc:"Env steps over which the learning rate falls to 0; 0 = constant." range:"0 or more" unit:"env steps"`
	AnnealClip       bool    `toml:"anneal_clip" doc:"The clip range falls with the learning rate."`
	Clip             float64 `toml:"clip" doc:"Clip range of PPO's ratio." range:"0.000001 to 10"`
	EntropyCoef      float64 `toml:"entropy_coef" doc:"Coefficient of the entropy in the loss." range:"0 to 10"`
	Hosts            int     `toml:"hosts" doc:"Most joined machines that have a further learner each; see learners." range:"0 to 64"`
	ppo.Config
}

func defaults() config {
	return config{LearningRate: 2.5e-4, Clip: 0.2, EntropyCoef: 0.01, Config: ppo.Defaults()}
}

// mostBeta bounds the weight of earlier gradients in Adam: with 1 it would learn nothing.
const mostBeta = 0.999999

// rates returns the hyper-parameters at an env step.
func (c *config) rates(envSteps uint64) ppo.Rates {
	left := 1.0
	if c.LRAnnealEnvSteps > 0 {
		left = max(0, 1-float64(envSteps)/float64(c.LRAnnealEnvSteps))
	}
	r := ppo.Rates{LearningRate: float32(c.LearningRate * left), Clip: float32(c.Clip), Entropy: float32(c.EntropyCoef)}
	if c.AnnealClip {
		r.Clip = float32(c.Clip * left)
	}
	return r
}

// validateRate checks the keys that make the learning rate follow the divergence.
func (c *config) validateRate(bad func(key, format string, args ...any), between func(key string, value, lo, hi float64)) {
	between("adaptive_kl", c.AdaptiveKL, 0, 100)
	if c.AdaptiveKL == 0 {
		return
	}
	between("learning_rate_min", c.LearningRateMin, 1e-12, 1)
	between("learning_rate_max", c.LearningRateMax, 1e-12, 1)
	switch {
	case c.LearningRateMin > c.LearningRateMax:
		bad("learning_rate_min", "is %g, above learning_rate_max = %g", c.LearningRateMin, c.LearningRateMax)
	case c.LRAnnealEnvSteps > 0:
		bad("adaptive_kl", "has the learning rate follow the divergence and lr_anneal_env_steps = %d the env steps: set either to 0",
			c.LRAnnealEnvSteps)
	}
}

// inDigits writes a number as people do: an integer with all its digits.
func inDigits(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// CodeShares is the code of minibatches that are too small for their learners; rlhost explain has its page.
const CodeShares = "E151"

// checkShares returns why a learner would have nothing of a minibatch, nil if each has something. A policy is learned in chunks of so many
// rows, 0 for one that is learned row by row.
func (c *config) checkShares(chunk int) error {
	units, of := c.Minibatch, "rows"
	if chunk > 0 {
		units, of = c.Minibatch/(chunk-c.BurnInRows), "chunks"
	}
	if c.Learners+c.Hosts <= units {
		return nil
	}
	and := ""
	if c.Hosts > 0 {
		and = fmt.Sprintf(", with hosts = %d more", c.Hosts)
	}
	return &component.ConfigError{Key: "learners", Code: CodeShares,
		Reason: fmt.Sprintf("is %d%s, and a minibatch has %d %s: some learners would have none", c.Learners, and, units, of),
		Help:   fmt.Sprintf("use %d learners or fewer in all, or a larger minibatch", units)}
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
			bad(key, "is %s, want %s to %s", inDigits(value), inDigits(lo), inDigits(hi))
		}
	}
	between("learning_rate", c.LearningRate, 0, 1)
	between("gamma", c.Gamma, 0, 1)
	between("gae_lambda", c.GAELambda, 0, 1)
	between("clip", c.Clip, 1e-6, 10)
	between("epochs", float64(c.Epochs), 1, 1000)
	between("minibatch", float64(c.Minibatch), 1, 1<<24)
	between("accumulate", float64(c.Accumulate), 1, ppo.MaxAccumulate)
	between("learners", float64(c.Learners), 1, ppo.MaxLearners)
	between("hosts", float64(c.Hosts), 0, ppo.MaxLearners)
	if err := c.checkShares(0); err != nil && c.Minibatch > 0 {
		errs = append(errs, err)
	}
	between("burn_in_rows", float64(c.BurnInRows), 0, policy.MaxChunk-1)
	between("entropy_coef", c.EntropyCoef, 0, 10)
	between("value_coef", c.ValueCoef, 0, 100)
	between("value_clip", c.ValueClip, 0, 1e6)
	between("max_grad_norm", c.MaxGradNorm, 0, 1e6)
	between("target_kl", c.TargetKL, 0, 100)
	between("kl_coef", c.KLCoef, 0, 1e6)
	between("bounds_loss_coef", c.BoundsLossCoef, 0, 1e6)
	c.validateRate(bad, between)
	between("rho_bar", c.RhoBar, 1e-6, 1e6)
	between("c_bar", c.CBar, 1e-6, 1e6)
	between("adam_beta1", c.AdamBeta1, 0, mostBeta)
	between("adam_beta2", c.AdamBeta2, 0, mostBeta)
	between("adam_eps", c.AdamEps, 1e-12, 1)
	if c.VTraceRecompute != ppo.RecomputeDataset && c.VTraceRecompute != ppo.RecomputeEpoch {
		bad("vtrace_recompute", "is %q, want dataset or epoch", c.VTraceRecompute)
	}
	if c.Discount != ppo.DiscountReplace && c.Discount != ppo.DiscountMultiply {
		bad("discount", "is %q, want replace or multiply", c.Discount)
	}
	return errors.Join(errs...)
}
