// A walk that goes on for a reward of 1 a step until action 1 is taken, and for ever with ends = 0: a greedy policy never
// ends what a sampled one does.
#include "rl_env.h"

typedef struct {
    bool ends;
} Walk;

static bool setup(Walk *w, rl_config *config)
{
    w->ends = rl_arg_i64(config, "ends", 1) != 0;
    return true;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    (void)w;
    (void)rng;
    obs[0] = 1;
}

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    obs[0] = 1;
    out->reward = 1;
    out->terminated = w->ends && action[0] == 1;
}

RL_ENV(Walk, setup, reset, step, .name = "endless@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1))
