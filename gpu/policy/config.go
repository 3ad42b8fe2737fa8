package policy

// Config is what a learner does with a dataset. The zero value is not useful; see Defaults.
type Config struct {
	Epochs    int // passes over the dataset
	Minibatch int // rows per optimiser step; the last one of an epoch may be smaller

	Gamma     float64 // discount
	GAELambda float64 // λ of GAE (Schulman et al. 2016) and of V-trace's traces

	ValueCoef          float64 // of ½·MSE in the loss
	ValueClip          float64 // clip of the value's change from the behaviour's value; 0 = off
	MaxGradNorm        float64 // global-norm clip; 0 = off
	NormalizeAdvantage bool    // per minibatch, over valid rows, with the sample standard deviation
	TargetKL           float64 // ends the epochs after a minibatch whose approx_kl exceeds it; 0 = off

	VTrace    bool    // targets by V-trace (Espeholt et al. 2018) instead of GAE
	RhoBar    float64 // ρ̄
	CBar      float64 // c̄
	Recompute string  // when V-trace's ratios are computed: "dataset" (once) or "epoch"

	AdamBeta1, AdamBeta2, AdamEps float64
}

// Defaults returns CleanRL's settings of PPO for classic control, with the value loss as ½·MSE times 0.5.
func Defaults() Config {
	return Config{
		Epochs: 4, Minibatch: 128,
		Gamma: 0.99, GAELambda: 0.95,
		ValueCoef: 0.5, MaxGradNorm: 0.5, NormalizeAdvantage: true,
		RhoBar: 1, CBar: 1, Recompute: "dataset",
		AdamBeta1: 0.9, AdamBeta2: 0.999, AdamEps: 1e-5,
	}
}

// Stats is what one Update reports. Losses are means over all its minibatches; the names in StatNames are
// CleanRL's.
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
	OptimizerSteps    float64
	Epochs            float64 // begun, fewer than configured after TargetKL
	ValidRows         float64
}

// StatNames returns the metric names of the fields of Stats, in the order of Values.
func StatNames() []string {
	return []string{"losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl",
		"losses/old_approx_kl", "losses/clipfrac", "losses/first_clipfrac", "losses/first_ratio_error",
		"losses/explained_variance", "losses/grad_norm", "losses/optimizer_steps", "losses/epochs",
		"losses/valid_rows"}
}

// Values appends the fields to dst in the order of StatNames.
func (s *Stats) Values(dst []float64) []float64 {
	return append(dst, s.PolicyLoss, s.ValueLoss, s.Entropy, s.ApproxKL, s.OldApproxKL, s.ClipFraction,
		s.FirstClipFraction, s.FirstRatioError, s.ExplainedVariance, s.GradNorm, s.OptimizerSteps, s.Epochs,
		s.ValidRows)
}
