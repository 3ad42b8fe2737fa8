// An environment with a discount of its own, one half: episodes of five steps with a reward of 40 each, of which it observes
// how many have been made. It also tells figures of itself, which a host need not want.
#include "rl_env.h"

enum { STEPS = 5 };

typedef struct {
    int32_t made;
} Walk;

static const rl_figure told[] = {{"steps", RL_TENSOR_SUM}, {"length", RL_TENSOR_EPISODE}};

static bool setup(Walk *w, rl_config *config)
{
    (void)w, (void)config;
    return true;
}

static void look(const Walk *w, float *obs)
{
    for (int32_t i = 0; i < STEPS; i++) obs[i] = i == w->made;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    (void)rng;
    w->made = 0;
    look(w, obs);
}

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng, (void)action;
    w->made++;
    look(w, obs);
    out->reward = 40;
    out->terminated = w->made == STEPS;
    out->discount = 0.5f;
    out->figures[0] = 1;
    if (out->terminated) out->figures[1] = (float)w->made;
}

RL_ENV(Walk, setup, reset, step, .name = "discount@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, STEPS), RL_FIGURES(told),
       .discount = true, .episode_limit = STEPS)
