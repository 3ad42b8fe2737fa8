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
	Epochs    int `toml:"epochs" doc:"Passes over a dataset." range:"1 to 1000"`
	Minibatch int `toml:"minibatch" doc:"Most rows of an optimiser step, or of each of its parts; see accumulate." range:"1 to 16,777,216" unit:"rows"`
	// Accumulate has an optimiser step on as many minibatches, whose gradients are added up: one minibatch that many times as large, in the
	// memory of one.
	Accumulate int `toml:"accumulate" doc:"Minibatches of an optimiser step: it is as with one that many times as large, in the memory of one." range:"1 to 4,096"`

	// Learners divide the rows of each minibatch among them, each on a processor of its own, and make the same step of the sum of their
	// gradients: that of one learner, but for rounding.
	Learners int `toml:"learners" doc:"Learners that divide each minibatch among them, each on a processor of its own." range:"1 to 64"`

	// BurnInRows has the first rows of each chunk only bring a core's state up to date with the parameters that a dataset's learning begins
	// with (Kapturowski et al. 2019, section 2.3). They count in the targets of the rows before them, and have no loss of their own.
	BurnInRows int `toml:"burn_in_rows" doc:"First rows of each chunk that only warm a core's state up with the current parameters; 0 = off." range:"0 to net.chunk - 1" unit:"rows"`

	Gamma     float64 `toml:"gamma" doc:"Discount." range:"0 to 1"`
	GAELambda float64 `toml:"gae_lambda" doc:"λ of GAE, and of V-trace's traces." range:"0 to 1"`
	// Discount selects a row's discount where the environment writes one: that number in the place of Gamma, or Gamma
	// times it, as dm_env's discounts are meant, which are 1 until the future ends.
	Discount string `toml:"discount" doc:"Whether an environment's own discount replaces gamma or is multiplied by it." range:"replace, multiply"`

	ValueCoef   float64 `toml:"value_coef" doc:"Coefficient of the value loss." range:"0 to 100"`
	ValueClip   float64 `toml:"value_clip" doc:"Clips the change of a value to this range; 0 = off." range:"0 to 1,000,000" unit:"reward"`
	MaxGradNorm float64 `toml:"max_grad_norm" doc:"Clips the global norm of the gradients; 0 = off." range:"0 to 1,000,000"`
	// SeparateGradNorms clips the actor's and the critic's gradient each by its own norm, unless they share parameters.
	SeparateGradNorms  bool `toml:"separate_grad_norms" doc:"Clips the gradients of policy and value each by its own norm."`
	NormalizeAdvantage bool `toml:"normalize_advantage" doc:"Normalises advantages in each minibatch."`
	// NormalizeReturns has the value learned in units of the returns' running statistics; see Returns. Values that are
	// stored and published stay in the units of rewards.
	NormalizeReturns bool    `toml:"normalize_returns" doc:"Learns values in units of the returns' running statistics."`
	TargetKL         float64 `toml:"target_kl" doc:"Ends the epochs of a dataset when a minibatch's approx_kl exceeds this; 0 = off." range:"0 to 100" unit:"nats"`
	KLCoef           float64 `toml:"kl_coef" doc:"Coefficient of the divergence from the policy that acted; 0 = off." range:"0 to 1,000,000"`

	// BoundsLossCoef is that of means of Box actions outside of their bounds in the loss: of the sum over the elements of the squared
	// distance, in half ranges. 0 = off.
	BoundsLossCoef float64 `toml:"bounds_loss_coef" doc:"Coefficient of the loss of action means outside of their bounds; 0 = off." range:"0 to 1,000,000"`

	// AdaptiveKL has the learning rate follow the divergence: before each optimiser step it is divided by 1.5 where the
	// minibatch's approx_kl is more than twice this, and multiplied by 1.5 where it is less than half, but not 0, within the
	// bounds. 0 = off.
	AdaptiveKL      float64 `toml:"adaptive_kl" doc:"Divergence that the learning rate is adjusted to; 0 = off." range:"0 to 100" unit:"nats"`
	LearningRateMin float64 `toml:"learning_rate_min" doc:"Smallest learning rate with adaptive_kl." range:"1e-12 to 1"`
	LearningRateMax float64 `toml:"learning_rate_max" doc:"Largest learning rate with adaptive_kl." range:"1e-12 to 1"`

	VTrace          bool    `toml:"vtrace" doc:"Computes targets by V-trace instead of GAE."`
	RhoBar          float64 `toml:"rho_bar" doc:"Clip of V-trace's ratios ρ." range:"0.000001 to 1,000,000"`
	CBar            float64 `toml:"c_bar" doc:"Clip of V-trace's traces c." range:"0.000001 to 1,000,000"`
	VTraceRecompute string  `toml:"vtrace_recompute" doc:"How often V-trace's ratios are computed: once a dataset, or in each epoch." range:"dataset, epoch"`

	// Shuffle gives each epoch a new order. Without it rows, or chunks, come as they were gathered: step by step, in a step
	// environment by environment.
	Shuffle bool `toml:"shuffle" doc:"Draws the rows of minibatches at random."`

	AdamBeta1 float64 `toml:"adam_beta1" doc:"β₁ of Adam." range:"0 to 0.999999"`
	AdamBeta2 float64 `toml:"adam_beta2" doc:"β₂ of Adam." range:"0 to 0.999999"`
	AdamEps   float64 `toml:"adam_eps" doc:"ε of Adam." range:"1e-12 to 1"`
}

// MaxAccumulate bounds Config.Accumulate.
const MaxAccumulate = 4096

// MaxLearners bounds Config.Learners.
const MaxLearners = 64

// Defaults returns CleanRL's settings of PPO for classic control, with the value loss as ½·MSE times 0.5.
func Defaults() Config {
	return Config{
		Epochs: 4, Minibatch: 128, Accumulate: 1, Learners: 1,
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
	case c.Accumulate < 1 || c.Accumulate > MaxAccumulate:
		return fmt.Errorf("accumulate = %d: want 1 to %d minibatches", c.Accumulate, MaxAccumulate)
	case c.Learners < 0 || c.Learners > MaxLearners:
		return fmt.Errorf("learners = %d: want 1 to %d", c.Learners, MaxLearners)
	case c.BurnInRows < 0:
		return fmt.Errorf("burn_in_rows = %d: want 0 or more", c.BurnInRows)
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
	ValidRows         float64 // learned from

	// The next fields are not among Values.
	Rows         float64 `json:"-"` // of the dataset: ValidRows and burn-in
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
