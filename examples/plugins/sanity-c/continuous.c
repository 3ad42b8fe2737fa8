// Continuous: a point in a square has twenty steps to a goal, each of up to a fifth along each axis. Both begin at random places, at
// least half a unit apart.
//
// The observation is the point and the goal. A step that comes nearer to the goal than any before is rewarded with the part of the first
// distance that it has gained; within a fifth of the goal the rest is paid and the game is over. Optimal score 1.
#include "rl_env.h"
#include "rl_math.h"

#define PACE 0.2f   // along an axis, in a step
#define AT_GOAL 0.2f
#define APART 0.5f  // of point and goal at first, at least

enum { STEPS = 20 };

typedef struct {
    float at[2], goal[2];
    float first, nearest; // distances to the goal
    int32_t steps;
} Continuous;

static bool setup(Continuous *c, rl_config *config)
{
    (void)c;
    (void)config;
    return true;
}

static float distance(const Continuous *c)
{
    float x = c->goal[0] - c->at[0], y = c->goal[1] - c->at[1];
    return rl_sqrtf(x * x + y * y);
}

static void look(const Continuous *c, float *obs)
{
    for (uint32_t i = 0; i < 2; i++) {
        obs[i] = c->at[i];
        obs[2 + i] = c->goal[i];
    }
}

static void reset(Continuous *c, rl_rng *rng, float *obs)
{
    for (uint32_t i = 0; i < 2; i++) c->at[i] = rl_uniform(rng, -1, 1);
    do {
        for (uint32_t i = 0; i < 2; i++) c->goal[i] = rl_uniform(rng, -1, 1);
    } while (distance(c) < APART);
    c->first = c->nearest = distance(c);
    c->steps = 0;
    look(c, obs);
}

static float clip(float v) { return v < -1 ? -1 : v > 1 ? 1 : v; }

static void step(Continuous *c, rl_rng *rng, const float *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    for (uint32_t i = 0; i < 2; i++) c->at[i] = clip(c->at[i] + PACE * clip(action[i]));
    c->steps++;
    float now = distance(c);
    if (now <= AT_GOAL) now = 0;
    out->terminated = now == 0 || c->steps >= STEPS; // what is not gained by then is lost
    if (now < c->nearest) {
        out->reward = (c->nearest - now) / c->first;
        c->nearest = now;
    }
    look(c, obs);
}

RL_ENV(Continuous, setup, reset, step, .name = "continuous@1", .action = RL_BOX(RL_F32, -1, 1, 2), .obs = RL_BOX(RL_F32, -1, 1, 4),
       .episode_limit = STEPS)
