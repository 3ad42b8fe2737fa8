// As many animals as AGENTS says in each environment, every one on its own way: what the agents of an environment cost is measured with
// it, against as many environments of one. With TURNS the environment says who acts, which is everybody.
#include "rl_env.h"

#define STEPS 100

typedef struct {
    float x[AGENTS], v[AGENTS];
    int32_t steps;
} Herd;

static bool setup(Herd *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

static void look(const Herd *env, int k, float push, float *obs)
{
    float x = env->x[k], v = env->v[k];
    obs[0] = x, obs[1] = v, obs[2] = x * x, obs[3] = v * push;
}

static void reset(Herd *env, rl_rng *rng, float *obs)
{
    env->steps = 0;
    for (int k = 0; k < AGENTS; k++) {
        env->x[k] = rl_uniform(rng, -0.5f, 0.5f);
        env->v[k] = rl_uniform(rng, -0.1f, 0.1f);
        look(env, k, 0, obs + 4 * k);
    }
}

static void step(Herd *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    for (int k = 0; k < AGENTS; k++) {
        float push = action[k] ? 0.02f : -0.02f;
        env->v[k] = 0.97f * env->v[k] - 0.01f * env->x[k] + push;
        env->x[k] += env->v[k];
        look(env, k, push, obs + 4 * k);
        out[k].reward = 1 - env->x[k] * env->x[k];
    }
    out->truncated = ++env->steps >= STEPS;
}

#ifdef TURNS
static void all_act(void *state, uint32_t i, uint8_t *acts)
{
    (void)state, (void)i;
    for (int k = 0; k < AGENTS; k++) acts[k] = 1;
}
#else
#define all_act 0
#endif

RL_ENV(Herd, setup, reset, step, .name = "herd@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -1000, 1000, 4),
       .episode_limit = STEPS, .agents = AGENTS, .active = all_act)
