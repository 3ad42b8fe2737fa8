// An environment whose _initialize, which runs its constructor, never returns: it calls itself for ever.
#include "rl_env.h"

static volatile int32_t depth;

static int32_t deeper(int32_t n)
{
    depth = n;
    return deeper(n + 1) + depth;
}

__attribute__((constructor)) static void initialize(void) { depth = deeper(0); }

typedef struct {
    int32_t age;
} Still;

static bool setup(Still *s, rl_config *config)
{
    (void)s, (void)config;
    return true;
}

static void reset(Still *s, rl_rng *rng, float *obs)
{
    (void)rng;
    obs[0] = (float)(s->age = 0);
}

static void step(Still *s, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng, (void)action;
    obs[0] = 0;
    out->truncated = ++s->age == 10;
}

RL_ENV(Still, setup, reset, step, .name = "still@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1))
