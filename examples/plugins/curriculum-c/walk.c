// Walk: from the start of a corridor to its end, whose length is a reset parameter. Whoever is not there after 64 steps has lost.
#include "rl_env.h"

#define LONGEST 32
#define STEPS 64

typedef struct {
    int32_t position, length, steps;
} Walk;

static bool setup(Walk *env, rl_config *config) { return (void)env, (void)config, true; }

static void look(const Walk *env, float *obs)
{
    obs[0] = (float)env->position / LONGEST;
    obs[1] = (float)env->length / LONGEST;
}

static void reset(Walk *env, rl_rng *rng, float *obs)
{
    (void)rng;
    int32_t length = (int32_t)rl_param(0);
    env->length = length > 0 ? length : LONGEST;
    env->position = env->steps = 0;
    look(env, obs);
}

static void step(Walk *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    env->position += *action ? 1 : -1;
    if (env->position < 0) env->position = 0;
    out->terminated = env->position >= env->length;
    out->truncated = ++env->steps == STEPS;
    out->reward = out->terminated ? 1 : 0;
    look(env, obs);
}

RL_ENV(Walk, setup, reset, step, .name = "walk@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 2), .episode_limit = STEPS,
       .params = RL_BOX(RL_F32, 1, LONGEST, 1))
