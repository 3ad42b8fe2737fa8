// Package names knows what the keys of a pipeline are called elsewhere: by earlier versions of rlhost, Stable-Baselines3, CleanRL,
// Sample Factory and RLlib. No such word is accepted; the error about it says which key is meant.
package names

import (
	"fmt"
	"slices"
	"strings"
)

// Key is a key of a pipeline that another word stands for.
type Key struct {
	Name  string // the key, or a word that a key may have for its value
	Table string // that has the key, such as component.learner; empty for a value
	Note  string // how it differs from what the word means elsewhere; may be empty
}

// The tables of a pipeline, as help names them.
const (
	learner   = "component.learner"
	rollout   = "component.rollout"
	batcher   = "component.batcher"
	inference = "component.inference"
	opponents = "component.opponents"
	policy    = "policy.main"
	run       = "run"
	swap      = "swap"
	stop      = "run.stop"
	env       = "env.NAME"
	train     = "train"
	plugin    = "plugin.NAME"
)

// former are words of earlier versions. One word may have been in several tables.
var former = map[string][]Key{
	"entropy":          {{Name: "entropy_coef", Table: learner}},
	"anneal_env_steps": {{Name: "lr_anneal_env_steps", Table: learner}},
	"clip_grad_apart":  {{Name: "separate_grad_norms", Table: learner}},
	"recompute":        {{Name: "vtrace_recompute", Table: learner}},
	"wall":             {{Name: "wall_time", Table: stop}},
	"every":            {{Name: "every_env_steps", Table: "run.evaluation"}, {Name: "every_versions", Table: opponents}},
	"deterministic":    {{Name: "greedy", Table: "run.evaluation"}},
	"keep_every":       {{Name: "keep_every_env_steps", Table: "run.checkpoint"}},
	"draw_every":       {{Name: "draw_every_versions", Table: opponents}},
	"env":              {{Name: "pass_env", Table: plugin}},
	"restarts":         {{Name: "max_restarts", Table: plugin}},
	"isolation":        {{Name: "runtime", Table: env}},
	"isolated":         {{Name: "runtime", Table: env}},
	"canary":           {{Name: "trial_envs", Table: swap}},
	"verify":           {{Name: "trial_steps", Table: swap}},
	"canary_train":     {{Name: "trial_live"}},
	"free":             {{Name: "parameter"}},
	"state":            {{Name: "network"}},
}

// rowsNotes are for words that count what rlhost measures in rows.
const (
	rowsNote    = "it is in rows, not a number of minibatches"
	datasetNote = "it is in rows of all environments together"
	allEnvs     = "of one instance of the rollout"
)

// elsewhere are the words of Stable-Baselines3, CleanRL, Sample Factory and RLlib.
var elsewhere = map[string][]Key{
	// the learner
	"lr":                           {{Name: "learning_rate", Table: learner}},
	"alpha":                        {{Name: "learning_rate", Table: learner}},
	"anneal_lr":                    {{Name: "lr_anneal_env_steps", Table: learner, Note: "it is the env step at which the rate reaches 0; 0 = a constant rate"}},
	"lr_schedule":                  {{Name: "lr_anneal_env_steps", Table: learner}, {Name: "adaptive_kl", Table: learner}},
	"lr_schedule_kl_threshold":     {{Name: "adaptive_kl", Table: learner}},
	"lr_adaptive_min":              {{Name: "learning_rate_min", Table: learner}},
	"lr_adaptive_max":              {{Name: "learning_rate_max", Table: learner}},
	"n_epochs":                     {{Name: "epochs", Table: learner}},
	"update_epochs":                {{Name: "epochs", Table: learner}},
	"num_epochs":                   {{Name: "epochs", Table: learner}},
	"num_sgd_iter":                 {{Name: "epochs", Table: learner}},
	"ppo_epochs":                   {{Name: "epochs", Table: learner}},
	"batch_size":                   {{Name: "minibatch", Table: learner, Note: "the rows of an optimiser step"}},
	"minibatch_size":               {{Name: "minibatch", Table: learner}},
	"sgd_minibatch_size":           {{Name: "minibatch", Table: learner}},
	"mini_batch_size":              {{Name: "minibatch", Table: learner}},
	"minibatch_rows":               {{Name: "minibatch", Table: learner}},
	"num_minibatches":              {{Name: "minibatch", Table: learner, Note: rowsNote}},
	"n_minibatches":                {{Name: "minibatch", Table: learner, Note: rowsNote}},
	"gradient_accumulation_steps":  {{Name: "accumulate", Table: learner}},
	"burn_in":                      {{Name: "burn_in_rows", Table: learner}},
	"burn_in_length":               {{Name: "burn_in_rows", Table: learner}},
	"num_batches_per_epoch":        {{Name: "dataset_rows", Table: batcher, Note: datasetNote}},
	"ent_coef":                     {{Name: "entropy_coef", Table: learner}},
	"entropy_coeff":                {{Name: "entropy_coef", Table: learner}},
	"entropy_coefficient":          {{Name: "entropy_coef", Table: learner}},
	"exploration_loss_coeff":       {{Name: "entropy_coef", Table: learner}},
	"vf_coef":                      {{Name: "value_coef", Table: learner}},
	"vf_loss_coeff":                {{Name: "value_coef", Table: learner}},
	"value_loss_coeff":             {{Name: "value_coef", Table: learner}},
	"value_loss_coef":              {{Name: "value_coef", Table: learner}},
	"clip_range":                   {{Name: "clip", Table: learner}},
	"clip_coef":                    {{Name: "clip", Table: learner}},
	"clip_param":                   {{Name: "clip", Table: learner}},
	"clip_ratio":                   {{Name: "clip", Table: learner}},
	"ppo_clip_ratio":               {{Name: "clip", Table: learner}},
	"clip_range_vf":                {{Name: "value_clip", Table: learner}},
	"clip_vloss":                   {{Name: "value_clip", Table: learner, Note: "it is the range; 0 = off"}},
	"vf_clip_param":                {{Name: "value_clip", Table: learner}},
	"ppo_clip_value":               {{Name: "value_clip", Table: learner}},
	"grad_clip":                    {{Name: "max_grad_norm", Table: learner}},
	"gradient_clip":                {{Name: "max_grad_norm", Table: learner}},
	"lambda":                       {{Name: "gae_lambda", Table: learner}},
	"lambda_":                      {{Name: "gae_lambda", Table: learner}},
	"lam":                          {{Name: "gae_lambda", Table: learner}},
	"discount_factor":              {{Name: "gamma", Table: learner}},
	"norm_adv":                     {{Name: "normalize_advantage", Table: learner}},
	"normalize_advantages":         {{Name: "normalize_advantage", Table: learner}},
	"norm_reward":                  {{Name: "normalize_returns", Table: learner}},
	"normalize_reward":             {{Name: "normalize_returns", Table: learner}},
	"kl_target":                    {{Name: "target_kl", Table: learner}},
	"kl_coeff":                     {{Name: "kl_coef", Table: learner}},
	"kl_loss_coeff":                {{Name: "kl_coef", Table: learner}},
	"with_vtrace":                  {{Name: "vtrace", Table: learner}},
	"use_vtrace":                   {{Name: "vtrace", Table: learner}},
	"vtrace_rho":                   {{Name: "rho_bar", Table: learner}},
	"vtrace_c":                     {{Name: "c_bar", Table: learner}},
	"vtrace_clip_rho_threshold":    {{Name: "rho_bar", Table: learner}},
	"vtrace_clip_pg_rho_threshold": {{Name: "rho_bar", Table: learner}},
	"adam_epsilon":                 {{Name: "adam_eps", Table: learner}},
	"optimizer_eps":                {{Name: "adam_eps", Table: learner}},
	"shuffle_minibatches":          {{Name: "shuffle", Table: learner}},
	"shuffle_sequences":            {{Name: "shuffle", Table: learner}},
	// the rollout
	"n_envs":                  {{Name: "envs", Table: rollout, Note: allEnvs}},
	"num_envs":                {{Name: "envs", Table: rollout, Note: allEnvs}},
	"num_envs_per_worker":     {{Name: "envs", Table: rollout, Note: allEnvs}},
	"num_envs_per_env_runner": {{Name: "envs", Table: rollout, Note: allEnvs}},
	"num_workers":             {{Name: "count", Table: rollout, Note: "how many instances there are"}},
	"num_env_runners":         {{Name: "count", Table: rollout, Note: "how many instances there are"}},
	"instances":               {{Name: "count", Table: rollout}},
	"worker_num_splits":       {{Name: "splits", Table: rollout}},
	"n_steps":                 {{Name: "horizon", Table: rollout}},
	"num_steps":               {{Name: "horizon", Table: rollout}},
	"rollout_length":          {{Name: "horizon", Table: rollout}},
	"rollout_fragment_length": {{Name: "horizon", Table: rollout}},
	"unroll_length":           {{Name: "horizon", Table: rollout}},
	// the batcher and the inference
	"train_batch_size":             {{Name: "dataset_rows", Table: batcher, Note: datasetNote}},
	"train_batch_size_per_learner": {{Name: "dataset_rows", Table: batcher, Note: datasetNote}},
	"buffer_size":                  {{Name: "dataset_rows", Table: batcher, Note: datasetNote}},
	// the policy
	"net_arch":                   {{Name: "net", Table: policy}},
	"fcnet_hiddens":              {{Name: "hidden", Table: policy + ".net"}},
	"encoder_mlp_layers":         {{Name: "hidden", Table: policy + ".net"}},
	"hidden_size":                {{Name: "hidden", Table: policy + ".net"}},
	"hidden_sizes":               {{Name: "hidden", Table: policy + ".net"}},
	"activation_fn":              {{Name: "activation", Table: policy + ".net"}},
	"fcnet_activation":           {{Name: "activation", Table: policy + ".net"}},
	"nonlinearity":               {{Name: "activation", Table: policy + ".net"}},
	"use_rnn":                    {{Name: "core", Table: policy + ".net"}},
	"rnn_type":                   {{Name: "core", Table: policy + ".net"}},
	"rnn_size":                   {{Name: "core", Table: policy + ".net"}},
	"use_lstm":                   {{Name: "core", Table: policy + ".net"}},
	"actor_critic_share_weights": {{Name: "share_trunk", Table: policy}},
	"vf_share_layers":            {{Name: "share_trunk", Table: policy}},
	"norm_obs":                   {{Name: "normalize_obs", Table: policy}},
	"normalize_input":            {{Name: "normalize_obs", Table: policy}},
	"normalize_observation":      {{Name: "normalize_obs", Table: policy}},
	"normalize_observations":     {{Name: "normalize_obs", Table: policy}},
	"framestack":                 {{Name: "frame_stack", Table: policy}},
	"n_stack":                    {{Name: "frame_stack", Table: policy}},
	"env_framestack":             {{Name: "frame_stack", Table: policy}},
	"device":                     {{Name: "backend", Table: policy}},
	"cuda":                       {{Name: "backend", Table: policy}},
	// the run and its environments
	"total_timesteps":                {{Name: "env_steps", Table: stop}},
	"timesteps_total":                {{Name: "env_steps", Table: stop}},
	"num_env_steps_sampled_lifetime": {{Name: "env_steps", Table: stop}},
	"train_for_env_steps":            {{Name: "env_steps", Table: stop}},
	"total_steps":                    {{Name: "env_steps", Table: stop}},
	"train_for_seconds":              {{Name: "wall_time", Table: stop}},
	"time_total_s":                   {{Name: "wall_time", Table: stop}},
	"seconds":                        {{Name: "wall_time", Table: stop}},
	"episode_return_mean":            {{Name: "return", Table: stop, Note: "the mean over the training window"}},
	"episode_reward_mean":            {{Name: "return", Table: stop, Note: "the mean over the training window"}},
	"train_return":                   {{Name: "return", Table: stop, Note: "the mean over the training window"}},
	"experiment":                     {{Name: "name", Table: run}},
	"exp_name":                       {{Name: "name", Table: run}},
	"train_dir":                      {{Name: "dir", Table: run}},
	"log_dir":                        {{Name: "dir", Table: run}},
	"eval_freq":                      {{Name: "every_env_steps", Table: "run.evaluation"}},
	"evaluation_interval":            {{Name: "every_env_steps", Table: "run.evaluation"}},
	"n_eval_episodes":                {{Name: "episodes", Table: "run.evaluation"}},
	"eval_episodes":                  {{Name: "episodes", Table: "run.evaluation"}},
	"evaluation_duration":            {{Name: "episodes", Table: "run.evaluation"}},
	"save_freq":                      {{Name: "every", Table: "run.checkpoint"}},
	"save_every_sec":                 {{Name: "every", Table: "run.checkpoint"}},
	"checkpoint_frequency":           {{Name: "every", Table: "run.checkpoint"}},
	"keep_checkpoints":               {{Name: "keep", Table: "run.checkpoint"}},
	"num_to_keep":                    {{Name: "keep", Table: "run.checkpoint"}},
	"env_id":                         {{Name: "use", Table: env}, {Name: "env", Table: train}},
	"env_name":                       {{Name: "use", Table: env}, {Name: "env", Table: train}},
	"env_kwargs":                     {{Name: "args", Table: env}},
	"env_config":                     {{Name: "args", Table: env}},
	"env_wrapper":                    {{Name: "wrap", Table: env}},
	"wrapper":                        {{Name: "wrap", Table: env}},
	"wrappers":                       {{Name: "wrap", Table: env}},
	"async_rl":                       {{Name: "mode", Table: train, Note: `"async" or "sync"`}},
	"serial_mode":                    {{Name: "mode", Table: train, Note: `"async" or "sync"`}},
	"algo":                           {{Name: "preset", Table: train}},
}

// common are former words that people write in other tables for other reasons: they are told only where the new key belongs.
var common = []string{"env", "every", "free", "state"}

// flags are words of earlier versions on the command line, with what stands for them.
var flags = map[string]string{
	"--canary":           "--trial-envs",
	"--canary-train":     "--trial-live",
	"--verify":           "--trial-steps",
	"--isolated":         "--runtime process",
	"--in":               "--run",
	"--deterministic":    "--greedy",
	"--no-deterministic": "--no-greedy",
}

// columns are words of earlier versions for columns of runs.
var columns = map[string]string{"return": "eval_return", "window": "train_return"}

// Flag returns the flag or command that has another name now, and its new name.
func Flag(word string) (now string, ok bool) {
	now, ok = flags[word]
	return now, ok
}

// Column returns the column of runs that has another name now, and its new name.
func Column(word string) (now string, ok bool) {
	now, ok = columns[word]
	return now, ok
}

// Meant returns the help for a word that a table does not have. known are the keys that it may have: one of them, or else the table
// that has the key. It returns nothing for an unknown word.
func Meant(word string, known []string) string {
	word = strings.ToLower(word)
	keys := slices.Concat(former[word], elsewhere[word])
	for _, k := range keys {
		if slices.Contains(known, k.Name) {
			return fmt.Sprintf("did you mean `%s`?%s", k.Name, k.note())
		}
	}
	for _, k := range keys {
		if k.Table != "" && !slices.Contains(common, word) {
			return fmt.Sprintf("did you mean `%s` in [%s]?%s", k.Name, k.Table, k.note())
		}
	}
	return ""
}

func (k *Key) note() string {
	if k.Note == "" {
		return ""
	}
	return " (" + k.Note + ")"
}

// Words returns the words that other programs have for a key, sorted; none for most.
func Words(key, table string) []string {
	var words []string
	for word, keys := range elsewhere {
		for _, k := range keys {
			if k.Name == key && k.Table == table {
				words = append(words, word)
			}
		}
	}
	slices.Sort(words)
	return words
}

// All returns every word with the keys that it stands for.
func All() map[string][]Key {
	all := map[string][]Key{}
	for _, table := range []map[string][]Key{former, elsewhere} {
		for word, keys := range table {
			all[word] = append(all[word], keys...)
		}
	}
	return all
}
