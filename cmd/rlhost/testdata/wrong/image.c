// Images of 84 × 84 × 4 float32 from one number. Each environment has HELD bytes of its own, which it does not use.
#include "rl_env.h"

enum { PIXELS = 84 * 84 * 4 };

#ifndef HELD
#define HELD 4
#endif

typedef struct {
    int32_t age;
    uint8_t held[HELD];
} Walk;

static bool setup(Walk *w, rl_config *config)
{
    (void)w, (void)config;
    return true;
}

static void draw(const Walk *w, float *obs)
{
    for (int32_t i = 0; i < PIXELS; i++) obs[i] = (float)((w->age + i) & 7) * 0.125f;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    w->age = (int32_t)rl_below(rng, 9);
    draw(w, obs);
}

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    w->age += 1 + action[0];
    out->reward = 1;
    out->truncated = w->age >= 40;
    draw(w, obs);
}

RL_ENV(Walk, setup, reset, step, .name = "image@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 84, 84, 4),
       .episode_limit = 40)
