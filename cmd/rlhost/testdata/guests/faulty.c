// A walk that goes wrong where its arguments say: faults of guests, at a place that a test can name.
//
//	fault = 1 out of bounds, 2 a loop without end, 3 recursion without end, 4 observations that are NaN from there on,
//	        5 a flag of 2, 6 a random stream that all environments share, 7 a last observation that is NaN of an
//	        episode that terminates, 8 of one that is truncated
//	env   = the environment of the batch in which, step = the step at which it happens
#include "rl_env.h"

enum { TRAP = 1, LOOP, RECURSE, NOT_A_NUMBER, FLAG, SHARED, LAST_TERMINATED, LAST_TRUNCATED };

typedef struct {
    int32_t fault, env, at;
    int32_t number, steps, cell, age;
} Walk;

static int32_t made; // environments made so far: the number of the next
static rl_rng shared;
static volatile int32_t sink;

static bool setup(Walk *w, rl_config *config)
{
    w->fault = (int32_t)rl_arg_i64(config, "fault", 0);
    w->env = (int32_t)rl_arg_i64(config, "env", 0);
    w->at = (int32_t)rl_arg_i64(config, "step", 1);
    w->number = made++;
    return true;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    w->cell = (int32_t)rl_below(w->fault == SHARED ? &shared : rng, 9) - 4;
    w->age = 0;
    obs[0] = (float)w->cell;
}

static int32_t recurse(int32_t n)
{
    sink = n;
    return recurse(n + 1) + sink;
}

static void go_wrong(Walk *w, float *obs, rl_result *out)
{
    switch (w->fault) {
    case TRAP: *(volatile int32_t *)0xfffffff0u = 1; break;
    case LOOP: for (;;) sink++;
    case RECURSE: sink = recurse(0); break;
    case NOT_A_NUMBER: // in an observation that is acted on: after the last step of an episode comes another
        obs[0] = __builtin_nanf("");
        out->terminated = out->truncated = false;
        break;
    case FLAG: *(uint8_t *)&out->terminated = 2; break;
    case LAST_TERMINATED:
    case LAST_TRUNCATED:
        obs[0] = __builtin_nanf("");
        out->terminated = w->fault == LAST_TERMINATED;
        out->truncated = w->fault == LAST_TRUNCATED;
        break;
    }
}

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    w->cell += action[0] == 1 ? 1 : -1;
    obs[0] = (float)w->cell;
    out->terminated = w->cell < -5 || w->cell > 5;
    out->truncated = ++w->age >= 40;
    out->reward = w->cell > 0;
    bool then = ++w->steps == w->at || (w->fault == NOT_A_NUMBER && w->steps > w->at);
    if (then && w->number == w->env) go_wrong(w, obs, out);
}

RL_ENV(Walk, setup, reset, step, .name = "walk@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -10, 10, 1),
       .episode_limit = 40)
