// The walk of faulty.c, in a version that traps in its first step.
#include "rl_env.h"

typedef struct {
    int32_t cell;
} Walk;

static bool setup(Walk *w, rl_config *config)
{
    (void)config;
    w->cell = 0;
    return true;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    w->cell = (int32_t)rl_below(rng, 9) - 4;
    obs[0] = (float)w->cell;
}

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)w, (void)rng, (void)action, (void)obs, (void)out;
    __builtin_trap();
}

RL_ENV(Walk, setup, reset, step, .name = "walk@2", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -10, 10, 1),
       .episode_limit = 40)
