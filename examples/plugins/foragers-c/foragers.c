// Foragers: four of them on a line, with food in one cell. A step costs energy and food gives some. One that has none left, or walks off
// the line, is dead and back at once somewhere else; so is one that has become old. The world never ends.
#include "rl_env.h"

#define FORAGERS 4
#define CELLS 16
#define SEEN 3
#define FULL 12
#define MEAL 8
#define OLD 32

typedef struct {
    int32_t food, at[FORAGERS], energy[FORAGERS], age[FORAGERS];
} Foragers;

static bool setup(Foragers *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

// born puts a forager somewhere.
static void born(Foragers *env, rl_rng *rng, int k)
{
    env->at[k] = (int32_t)rl_below(rng, CELLS);
    env->energy[k] = FULL;
    env->age[k] = 0;
}

// look writes what one observes: where it is, how far the food is, and its energy.
static void look(const Foragers *env, int k, float *obs)
{
    obs[SEEN * k] = (float)env->at[k];
    obs[SEEN * k + 1] = (float)(env->food - env->at[k]);
    obs[SEEN * k + 2] = (float)env->energy[k];
}

static void reset(Foragers *env, rl_rng *rng, float *obs)
{
    env->food = (int32_t)rl_below(rng, CELLS);
    for (int k = 0; k < FORAGERS; k++) born(env, rng, k);
    for (int k = 0; k < FORAGERS; k++) look(env, k, obs);
}

// advance moves a forager by one cell: to the left, not at all or to the right.
static void advance(Foragers *env, rl_rng *rng, int k, int32_t move, rl_result *out)
{
    env->at[k] += move - 1;
    env->energy[k]--;
    env->age[k]++;
    if (env->at[k] == env->food) {
        out->reward = 1;
        env->energy[k] = env->energy[k] + MEAL > FULL ? FULL : env->energy[k] + MEAL;
        env->food = (int32_t)rl_below(rng, CELLS);
    }
    if (env->at[k] < 0 || env->at[k] >= CELLS || env->energy[k] == 0) {
        out->reward = -1;
        out->terminated = true;
    }
    out->truncated = env->age[k] >= OLD;
}

static void step(Foragers *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    for (int k = 0; k < FORAGERS; k++) advance(env, rng, k, action[k], &out[k]);
    for (int k = 0; k < FORAGERS; k++) look(env, k, obs);
    for (int k = 0; k < FORAGERS; k++) {
        if (!out[k].terminated && !out[k].truncated) continue;
        rl_last(k, obs);
        born(env, rng, k);
        look(env, k, obs);
    }
}

RL_ENV(Foragers, setup, reset, step, .name = "foragers@1", .action = RL_DISCRETE(3), .obs = RL_BOX(RL_F32, -CELLS, CELLS, SEEN),
       .agents = FORAGERS, .respawn = true)
