// Needs more stack than a guest has: the step must trap, and must not write over what is static.
#include "rl_env.h"

enum { TABLE = 2 << 20, LOCAL = 1200 << 10 };

typedef struct {
    uint32_t steps;
} Deep;

static volatile unsigned char table[TABLE] = {1};

static bool setup(Deep *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

static void reset(Deep *env, rl_rng *rng, float *obs)
{
    env->steps = 0;
    obs[0] = rl_uniform(rng, 0, 1);
}

static void step(Deep *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    volatile unsigned char local[LOCAL];
    for (uint32_t i = 0; i < LOCAL; i += 64) local[i] = (unsigned char)action[0];
    env->steps++;
    obs[0] = rl_uniform(rng, 0, 1) * (float)table[local[0] % TABLE];
    out->truncated = env->steps == 20;
}

RL_ENV(Deep, setup, reset, step, .name = "deep@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 255, 1), .episode_limit = 20)
