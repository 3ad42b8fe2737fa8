// Hand-written. A port of an environment that is written as those of PufferLib's Ocean are: a header with a struct of observations,
// actions, rewards and terminals, and the functions c_reset and c_step. The header stays as it is:
//
//	#include "rl_ocean.h"
//	#include "squared.h"
//
//	static bool setup(Squared *env, rl_config *config)
//	{
//	    env->size = (int)rl_arg_i64(config, "size", 11);
//	    return true;
//	}
//
//	RL_OCEAN(Squared, setup, .name = "squared@1", .action = RL_DISCRETE(5), .obs = RL_BOX(RL_U8, 0, 2, 121), .episode_limit = 34)
//
// It is built with a C library, and with raylib.h on the path, whose functions the linker throws away with c_render and c_close, which
// nobody calls: the memory goes with the module. Fields of rl_env follow: .agents, and .respawn where an agent's terminal does not end
// the episode of all. The buffers keep what was written into them, as such environments expect. rand and random draw from the
// environment's stream. Nothing is saved, for the struct has pointers.
//
// Such environments begin their next episode within the step that ends one, so the SDK's reset comes on top, and their last observation is
// gone: it is the one before the last step. Those that end an episode and leave terminals alone are told by a macro in front of this
// header: #define RL_OCEAN_CUT(env, k) ((env)->tick == 0) truncates the episode of agent k, and RL_OCEAN_END(env, k) ends it.
#ifndef RL_OCEAN_H
#define RL_OCEAN_H

#include "rl_env.h"

#include <stdlib.h>
#include <string.h>

static rl_rng *rl_ocean_rng; // of the environment that runs
RL_QUIET static int rl_ocean_rand(void) { return (int)(rl_next(rl_ocean_rng) >> 33) & RAND_MAX; }
#define rand rl_ocean_rand
#define random rl_ocean_rand
#define srand(seed) ((void)(seed))

#ifndef RL_OCEAN_CUT
#define RL_OCEAN_CUT(env, k) false
#endif
#ifndef RL_OCEAN_END
#define RL_OCEAN_END(env, k) ((env)->terminals[k] != 0)
#endif

// RL_OCEAN makes the environment out of the header's struct and the author's setup, which fills in its parameters.
#define RL_OCEAN(Env, setup_, ...)                                                                                                   \
    static bool rl_ocean_setup(Env *env, rl_config *config)                                                                          \
    {                                                                                                                                \
        static rl_rng none; /* of those that draw before their first reset */                                                        \
        rl_ocean_rng = &none;                                                                                                        \
        env->observations = calloc(rl_agents() * rl_elements(&rl_the_env.obs), sizeof *env->observations);                           \
        env->actions = calloc(rl_agents() * rl_elements(&rl_the_env.action), sizeof *env->actions);                                  \
        env->rewards = calloc(rl_agents(), sizeof *env->rewards);                                                                    \
        env->terminals = calloc(rl_agents(), sizeof *env->terminals);                                                                \
        if (!env->observations || !env->actions || !env->rewards || !env->terminals) return rl_fail("out of memory");                \
        return setup_(env, config);                                                                                                  \
    }                                                                                                                                \
    RL_INLINE void rl_ocean_reset(Env *env, rl_rng *rng, void *obs)                                                                  \
    {                                                                                                                                \
        rl_ocean_rng = rng;                                                                                                          \
        memset(env->terminals, 0, rl_agents() * sizeof *env->terminals);                                                             \
        memset(env->rewards, 0, rl_agents() * sizeof *env->rewards);                                                                 \
        c_reset(env);                                                                                                                \
        memcpy(obs, env->observations, rl_agents() * rl_elements(&rl_the_env.obs) * sizeof *env->observations);                      \
    }                                                                                                                                \
    RL_INLINE void rl_ocean_step(Env *env, rl_rng *rng, const void *action, void *obs, rl_result *out)                               \
    {                                                                                                                                \
        size_t bytes = rl_agents() * rl_elements(&rl_the_env.obs) * sizeof *env->observations;                                       \
        bool over = false, whole = rl_discrete(&rl_the_env.action);                                                                  \
        rl_ocean_rng = rng;                                                                                                          \
        for (uint32_t k = 0; k < rl_agents() * rl_elements(&rl_the_env.action); k++)                                                 \
            env->actions[k] = (__typeof__(*env->actions))(whole ? (float)((const int32_t *)action)[k] : ((const float *)action)[k]); \
        memset(env->rewards, 0, rl_agents() * sizeof *env->rewards);                                                                 \
        memset(env->terminals, 0, rl_agents() * sizeof *env->terminals);                                                             \
        memcpy(obs, env->observations, bytes);                                                                                       \
        c_step(env);                                                                                                                 \
        for (uint32_t k = 0; k < rl_agents(); k++) {                                                                                 \
            bool ended = RL_OCEAN_END(env, k), cut = RL_OCEAN_CUT(env, k) && !ended;                                                 \
            out[k].reward = env->rewards[k], out[k].terminated = ended, out[k].truncated = cut;                                      \
            over = over || ended || cut;                                                                                             \
            if (rl_the_env.respawn && (ended || cut)) rl_last(k, obs);                                                               \
        }                                                                                                                            \
        if (rl_the_env.respawn || !over) memcpy(obs, env->observations, bytes);                                                      \
    }                                                                                                                                \
    RL_ENV(Env, rl_ocean_setup, rl_ocean_reset, rl_ocean_step, __VA_ARGS__, .save = RL_NOT_SAVED)

#endif
