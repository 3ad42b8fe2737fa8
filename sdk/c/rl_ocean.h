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
// nobody calls: the memory goes with the module. Fields of rl_env follow: .agents, and .respawn where an agent's terminal does not end the episode of all. The buffers keep what was written
// into them, as such environments expect. rand and random draw from the environment's stream. Nothing is saved, for the struct has pointers.
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
#define RL_OCEAN(Env, setup_, ...)                                                                             \
    static void rl_ocean_destroy(void *all, uint32_t envs)                                                     \
    {                                                                                                          \
        for (Env *env = (Env *)all; env < (Env *)all + envs; env++)                                            \
            free(env->observations), free(env->actions), free(env->rewards), free(env->terminals);             \
        rl_put(all, envs * (uint32_t)sizeof(Env));                                                             \
    }                                                                                                          \
    static void *rl_ocean_create(uint32_t envs, rl_config *config)                                             \
    {                                                                                                          \
        static rl_rng none; /* of those that draw before their first reset */                                  \
        Env *all = (Env *)rl_new(envs, sizeof(Env));                                                           \
        for (Env *env = all; env && env < all + envs; env++) {                                                 \
            rl_ocean_rng = &none;                                                                              \
            env->observations = calloc(rl_agents() * rl_elements(&rl_the_env.obs), sizeof *env->observations); \
            env->actions = calloc(rl_agents() * rl_elements(&rl_the_env.action), sizeof *env->actions);        \
            env->rewards = calloc(rl_agents(), sizeof *env->rewards);                                          \
            if (setup_(env, config)) env->terminals = calloc(rl_agents(), sizeof *env->terminals);             \
            if (!env->terminals) return rl_ocean_destroy(all, envs), NULL;                                     \
        }                                                                                                      \
        return all;                                                                                            \
    }                                                                                                          \
    RL_INLINE void rl_ocean_first(void *all, uint32_t i, rl_rng *rng, void *obs)                               \
    {                                                                                                          \
        Env *env = (Env *)all + i;                                                                             \
        rl_ocean_rng = rng;                                                                                    \
        memset(env->terminals, 0, rl_agents() * sizeof *env->terminals);                                       \
        memset(env->rewards, 0, rl_agents() * sizeof *env->rewards);                                           \
        c_reset(env);                                                                                          \
        memcpy(obs, env->observations, rl_agents() * rl_elements(&rl_the_env.obs) * sizeof *env->observations); \
    }                                                                                                          \
    static void rl_ocean_reset(void *all, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row)            \
    {                                                                                                          \
        rl_first(all, i, rng, obs, row, rl_ocean_first);                                                       \
    }                                                                                                          \
    RL_INLINE void rl_ocean_one(void *all, uint32_t i, rl_rng *rng, const void *action, void *obs, rl_result *out) \
    {                                                                                                          \
        Env *env = (Env *)all + i;                                                                             \
        size_t bytes = rl_agents() * rl_elements(&rl_the_env.obs) * sizeof *env->observations;                 \
        rl_ocean_rng = rng;                                                                                    \
        for (uint32_t k = 0; k < rl_agents() * rl_elements(&rl_the_env.action); k++)                           \
            env->actions[k] = (__typeof__(*env->actions))(rl_discrete(&rl_the_env.action) ? (float)((const int32_t *)action)[k] : ((const float *)action)[k]); \
        memset(env->rewards, 0, rl_agents() * sizeof *env->rewards);                                           \
        memset(env->terminals, 0, rl_agents() * sizeof *env->terminals);                                       \
        memcpy(obs, env->observations, bytes);                                                                 \
        c_step(env);                                                                                           \
        bool over = false;                                                                                     \
        for (uint32_t k = 0; k < rl_agents(); k++) {                                                           \
            out[k].reward = env->rewards[k];                                                                   \
            out[k].terminated = RL_OCEAN_END(env, k);                                                          \
            out[k].truncated = RL_OCEAN_CUT(env, k) && !out[k].terminated;                                     \
            over = over || out[k].terminated || out[k].truncated;                                              \
            if (rl_the_env.respawn && (out[k].terminated || out[k].truncated)) rl_last(k, obs);                \
        }                                                                                                      \
        if (rl_the_env.respawn || !over) memcpy(obs, env->observations, bytes);                                \
    }                                                                                                          \
    static void rl_ocean_step(void *all, uint32_t first, uint32_t count, const rl_view *view)                  \
    {                                                                                                          \
        rl_each(all, first, count, view, rl_ocean_one);                                                        \
    }                                                                                                          \
    RL_VECTOR_ENV(__VA_ARGS__, .save = RL_NOT_SAVED, .create = rl_ocean_create, .destroy = rl_ocean_destroy,   \
                  .reset = rl_ocean_reset, .step = rl_ocean_step)

#endif
