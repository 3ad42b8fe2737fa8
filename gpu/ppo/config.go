package ppo

import "fmt"

// Values of Config.VTraceRecompute.
const (
	RecomputeDataset = "dataset"
	RecomputeEpoch   = "epoch"
)

// Values of Config.Discount.
const (
	DiscountReplace  = "replace"
	DiscountMultiply = "multiply"
)

// Config says how a learner learns from a dataset, with the keys of a learner's table. The zero value is not useful; see Defaults.
type Config struct {
	Epochs    int `toml:"epochs"`    // passes over the dataset
	Minibatch int `toml:"minibatch"` // most rows of an optimiser step; see NextMinibatch

	Gamma     float64 `toml:"gamma"`      // discount
	GAELambda float64 `toml:"gae_lambda"` // λ of GAE (Schulman et al. 2016) and of V-trace's traces
	// Discount selects a row's discount where the environment writes one: that number in the place of Gamma, or Gamma
	// times it, as dm_env's discounts are meant, which are 1 until the future ends.
	Discount string `toml:"discount"`

	ValueCoef   float64 `toml:"value_coef"`    // of ½·MSE in the loss
	ValueClip   float64 `toml:"value_clip"`    // clip of the value's change from the behaviour's value; 0 = off
	MaxGradNorm float64 `toml:"max_grad_norm"` // global-norm clip; 0 = off
	// SeparateGradNorms clips the actor's and the critic's gradient each by its own norm, unless they share parameters.
	SeparateGradNorms  bool `toml:"separate_grad_norms"`
	NormalizeAdvantage bool `toml:"normalize_advantage"` // per minibatch, over valid rows, with the sample standard deviation
	// NormalizeReturns has the value learned in units of the returns' running statistics; see Returns. Values that are
	// stored and published stay in the units of rewards.
	NormalizeReturns bool    `toml:"normalize_returns"`
	TargetKL         float64 `toml:"target_kl"` // ends the epochs after a minibatch whose approx_kl exceeds it; 0 = off
	KLCoef           float64 `toml:"kl_coef"`   // of the divergence from the acting policy in the loss; 0 = off

	// BoundsLossCoef is that of means of Box actions outside of their bounds in the loss: of the sum over the elements of the squared
	// distance, in half ranges. 0 = off.
	BoundsLossCoef float64 `toml:"bounds_loss_coef"`

	// AdaptiveKL has the learning rate follow the divergence: before each optimiser step it is divided by 1.5 where the
	// minibatch's approx_kl is more than twice this, and multiplied by 1.5 where it is less than half, but not 0, within the
	// bounds. 0 = off.
	AdaptiveKL      float64 `toml:"adaptive_kl"`
	LearningRateMin float64 `toml:"learning_rate_min"`
	LearningRateMax float64 `toml:"learning_rate_max"`

	VTrace          bool    `toml:"vtrace"`           // targets by V-trace (Espeholt et al. 2018) instead of GAE
	RhoBar          float64 `toml:"rho_bar"`          // ρ̄
	CBar            float64 `toml:"c_bar"`            // c̄
	VTraceRecompute string  `toml:"vtrace_recompute"` // when V-trace's ratios are computed: "dataset" (once) or "epoch"

	// Shuffle gives each epoch a new order. Without it rows, or chunks, come as they were gathered: step by step, in a step
	// environment by environment.
	Shuffle bool `toml:"shuffle"`

	AdamBeta1 float64 `toml:"adam_beta1"` // β₁, of the mean of gradients
	AdamBeta2 float64 `toml:"adam_beta2"` // β₂, of their squares
	AdamEps   float64 `toml:"adam_eps"`
}

// Defaults returns CleanRL's settings of PPO for classic control, with the value loss as ½·MSE times 0.5.
func Defaults() Config {
	return Config{
		Epochs: 4, Minibatch: 128,
		Gamma: 0.99, GAELambda: 0.95, Discount: DiscountReplace,
		ValueCoef: 0.5, MaxGradNorm: 0.5, NormalizeAdvantage: true,
		RhoBar: 1, CBar: 1, VTraceRecompute: RecomputeDataset,
		LearningRateMin: 1e-5, LearningRateMax: 1e-2,
		Shuffle: true, AdamBeta1: 0.9, AdamBeta2: 0.999, AdamEps: 1e-5,
	}
}

// Validate reports the first setting that no learner could work with.
func (c *Config) Validate() error {
	within := func(x float64) bool { return x >= 0 && x <= 1 }
	switch {
	case c.Epochs < 1:
		return fmt.Errorf("epochs = %d: want 1 or more", c.Epochs)
	case c.Minibatch < 1:
		return fmt.Errorf("minibatch = %d: want 1 or more rows", c.Minibatch)
	case !within(c.Gamma):
		return fmt.Errorf("gamma = %v: want 0 to 1", c.Gamma)
	case !within(c.GAELambda):
		return fmt.Errorf("gae_lambda = %v: want 0 to 1", c.GAELambda)
	case c.Discount != DiscountReplace && c.Discount != DiscountMultiply:
		return fmt.Errorf("discount = %q: want replace or multiply", c.Discount)
	case c.ValueCoef < 0 || c.ValueClip < 0 || c.MaxGradNorm < 0 || c.TargetKL < 0 || c.KLCoef < 0 || c.BoundsLossCoef < 0 || c.AdaptiveKL < 0:
		return fmt.Errorf("value_coef, value_clip, max_grad_norm, target_kl, kl_coef, bounds_loss_coef and adaptive_kl: want 0 or more")
	case c.AdaptiveKL > 0 && !(c.LearningRateMin > 0 && c.LearningRateMin <= c.LearningRateMax):
		return fmt.Errorf("learning_rate_min = %v, learning_rate_max = %v: want more than 0, and not reversed",
			c.LearningRateMin, c.LearningRateMax)
	case c.VTrace && (c.RhoBar <= 0 || c.CBar <= 0):
		return fmt.Errorf("rho_bar = %v, c_bar = %v: want more than 0", c.RhoBar, c.CBar)
	case c.VTrace && c.VTraceRecompute != RecomputeDataset && c.VTraceRecompute != RecomputeEpoch:
		return fmt.Errorf("vtrace_recompute = %q: want dataset or epoch", c.VTraceRecompute)
	case !within(c.AdamBeta1) || !within(c.AdamBeta2) || c.AdamBeta1 == 1 || c.AdamBeta2 == 1:
		return fmt.Errorf("adam_beta1 = %v, adam_beta2 = %v: want 0 to less than 1", c.AdamBeta1, c.AdamBeta2)
	case !(c.AdamEps > 0):
		return fmt.Errorf("adam_eps = %v: want more than 0", c.AdamEps)
	}
	return nil
}

// Stats is the report of one Update. Losses are means over all its minibatches; the names in StatNames are CleanRL's.
type Stats struct {
	PolicyLoss        float64
	ValueLoss         float64 // ½·mean squared error, before the coefficient
	Entropy           float64
	ApproxKL          float64 // mean of (ratio-1) - log ratio: estimator k3 of Schulman's note on approximating KL
	OldApproxKL       float64 // mean of -log ratio: estimator k1
	ClipFraction      float64
	FirstClipFraction float64 // of the first minibatch: the policy lag's effect
	FirstRatioError   float64 // largest |ratio-1| of the first minibatch; exactly 0 with zero lag
	ExplainedVariance float64
	GradNorm          float64 // before the clip
	ActorGradNorm     float64 // of the actor's parameters alone; GradNorm where actor and critic share some
	CriticGradNorm    float64
	OptimizerSteps    float64
	Epochs            float64 // begun, fewer than configured after TargetKL
	ValidRows         float64

	// The next fields are not among Values.
	LearningRate float32 `json:"-"` // of the last step, or that of the rates
	Returns      Returns `json:"-"` // of the dataset, with NormalizeReturns
	Gathered     uint64  `json:"-"` // bytes of observations that were copied into minibatches
}

// StatNames returns the metric names of the fields of Stats, in the order of Values.
func StatNames() []string {
	return []string{"losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl",
		"losses/old_approx_kl", "losses/clipfrac", "losses/first_clipfrac", "losses/first_ratio_error",
		"losses/explained_variance", "losses/grad_norm", "losses/actor_grad_norm",
		"losses/critic_grad_norm", "losses/optimizer_steps", "losses/epochs", "losses/valid_rows"}
}

// Values appends the fields to dst in the order of StatNames.
func (s *Stats) Values(dst []float64) []float64 {
	return append(dst, s.PolicyLoss, s.ValueLoss, s.Entropy, s.ApproxKL, s.OldApproxKL, s.ClipFraction,
		s.FirstClipFraction, s.FirstRatioError, s.ExplainedVariance, s.GradNorm,
		s.ActorGradNorm, s.CriticGradNorm, s.OptimizerSteps, s.Epochs, s.ValidRows)
}
