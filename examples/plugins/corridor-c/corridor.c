// A corridor: the policy stands in one of its cells and must find the right end.
#include "rl_env.h"

typedef struct {
    int32_t length, cell, steps;
} Corridor;

static bool setup(Corridor *env, rl_config *config)
{
    int64_t length = rl_arg_i64(config, "length", 8);
    if (length < 2 || length > 1000) return rl_fail("length must be 2 to 1000");
    env->length = (int32_t)length;
    return true;
}

static void look(const Corridor *env, float *obs)
{
    obs[0] = (float)env->cell / (float)(env->length - 1);
}

static void reset(Corridor *env, rl_rng *rng, float *obs)
{
    env->cell = (int32_t)rl_below(rng, (uint32_t)env->length - 1); // anywhere but the end
    env->steps = 0;
    look(env, obs);
}

static void step(Corridor *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    env->cell += action[0] == 1 ? 1 : -1;
    if (env->cell < 0) env->cell = 0;
    env->steps++;
    look(env, obs);
    out->terminated = env->cell == env->length - 1;
    out->truncated = env->steps >= 50;
    out->reward = out->terminated ? 1.0f : -0.01f;
}

RL_ENV(Corridor, setup, reset, step, .name = "corridor@1", .action = RL_DISCRETE(2),
       .obs = RL_BOX(RL_F32, 0, 1, 1), .episode_limit = 50)
