// A policy as a WebAssembly module, as `rlhost export --format wasm` writes it. The module imports nothing and has its own memory.
//
// A host makes an instance and, for each step, writes an observation to rl_policy_obs(), where a mask is used also that to
// rl_policy_mask(), and reads the actions that rl_policy_act() points to. All pointers stay the same as long as the instance lives.
//
// An observation is the numbers that the environment wrote, of any type, as f32: input by input in the order of the description, the frames
// of an input from the oldest to the current one. Everything between these numbers and an action is in the module: normalisation, network,
// distribution, bounds. NaN stands for what an episode does not have yet, such as the last reward in its first step.
//
// The custom section "rlhost.policy" has the description as JSON: `network`, with the inputs' paths and shapes and the actions' names and
// choices, and `about`, the run and the policy's version.
#ifndef RLHOST_POLICY_H
#define RLHOST_POLICY_H

#include <stdint.h>

// rl_policy_v1 marks the version of this page. It is looked for, never called.
void rl_policy_v1(void);

// rl_policy_count returns how many elements one of these has.
enum { RL_POLICY_OBS, RL_POLICY_MASK, RL_POLICY_ACTIONS, RL_POLICY_STATE, RL_POLICY_PARAMS, RL_POLICY_KINDS };
uint32_t rl_policy_count(uint32_t of);

// rl_policy_obs points to the observation. The module does not change it.
float *rl_policy_obs(void);

// rl_policy_mask points to a byte for each choice of each element of each discrete action: 0 is illegal. All are 1 at first.
uint8_t *rl_policy_mask(void);

// rl_policy_act computes the most probable actions, as the environment reads them: one number for each element of each action.
const float *rl_policy_act(void);

// rl_policy_params points to the parameters of the actions' distributions after rl_policy_act: a logit for each choice, without the mask;
// of a Box the means and then the logarithms of the deviations, before they are brought within bounds.
const float *rl_policy_params(void);

// rl_policy_value returns the value of the observation that rl_policy_act was called with last, or NaN where the network's values need
// inputs that actions do not.
float rl_policy_value(void);

// rl_policy_state points to what the network keeps from step to step, which rl_policy_act replaces.
float *rl_policy_state(void);

// rl_policy_reset begins an episode: the state is zero.
void rl_policy_reset(void);

#endif
