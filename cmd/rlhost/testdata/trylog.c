// An environment that logs where it may.
#include "rl_env.h"

typedef struct {
    int32_t steps;
} Quiet;

static bool setup(Quiet *q, rl_config *config)
{
    (void)q;
    (void)config;
    return true;
}

static void reset(Quiet *q, rl_rng *rng, float *obs)
{
    (void)rng;
    rl_try_log(RL_WARNING, "an episode begins");
    q->steps = 0;
    obs[0] = 0;
}

static void step(Quiet *q, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    (void)action;
    obs[0] = (float)++q->steps;
    out->terminated = q->steps == 4;
}

RL_ENV(Quiet, setup, reset, step, .name = "quiet@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 4, 1))
