// The walk of faulty.c, in a version that never goes wrong, whatever its arguments say, and pays twice as much.
#include "rl_env.h"

typedef struct {
    int32_t cell, age;
} Walk;

static bool setup(Walk *w, rl_config *config)
{
    (void)rl_arg_i64(config, "fault", 0), (void)rl_arg_i64(config, "env", 0), (void)rl_arg_i64(config, "step", 1);
    w->age = 0;
    return true;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    w->cell = (int32_t)rl_below(rng, 9) - 4;
    w->age = 0;
    obs[0] = (float)w->cell;
}

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    w->cell += action[0] == 1 ? 1 : -1;
    obs[0] = (float)w->cell;
    out->terminated = w->cell < -5 || w->cell > 5;
    out->truncated = ++w->age >= 40;
    out->reward = w->cell > 0 ? 2 : 0;
}

RL_ENV(Walk, setup, reset, step, .name = "walk@3", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -10, 10, 1),
       .episode_limit = 40)
