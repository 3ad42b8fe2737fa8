// A corridor whose length stands in a file of data, and which logs it.
#include "rl_env.h"
#include "rl_data.h"

typedef struct {
    int32_t length, cell, steps;
} Corridor;

static bool setup(Corridor *env, rl_config *config)
{
    (void)config;
    char line[] = "length ...", *text = line + 7;
    long n = rl_data("sizes/length.txt", text, 3);
    if (n < 0) return rl_fail(rl_data_error(n));
    for (int i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++) env->length = 10 * env->length + text[i] - '0';
    if (env->length < 2) return rl_fail("length.txt has no length of 2 or more");
    text[2] = 0;
    rl_log(1, line);
    return true;
}

static void reset(Corridor *env, rl_rng *rng, float *obs)
{
    env->cell = (int32_t)rl_below(rng, (uint32_t)env->length - 1);
    env->steps = 0;
    obs[0] = (float)env->cell;
}

static void step(Corridor *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    if (action[0] == 1) env->cell++;
    out->truncated = ++env->steps >= 50;
    out->terminated = env->cell == env->length - 1;
    out->reward = out->terminated ? 1.0f : -0.01f;
    obs[0] = (float)env->cell;
}

RL_ENV(Corridor, setup, reset, step, .name = "corridor@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 100, 1), .episode_limit = 50)
