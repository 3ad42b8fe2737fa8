// Pendulum of which the angle is observed, as cosine and sine, and not its speed: a policy has to remember where it was. All else, and
// the argument, is pendulum.c's.
#define PARTS
#include "pendulum.c"

static void reset_positions(Pendulum *p, rl_rng *rng, float *obs)
{
    float all[3];
    reset(p, rng, all);
    __builtin_memcpy(obs, all, 2 * sizeof *obs);
}

static void step_positions(Pendulum *p, rl_rng *rng, const float *action, float *obs, rl_result *out)
{
    float all[3];
    step(p, rng, action, all, out);
    __builtin_memcpy(obs, all, 2 * sizeof *obs);
}

RL_ENV(Pendulum, setup, reset_positions, step_positions, .name = "pendulum-positions@1", .action = RL_BOX(RL_F32, -2, 2, 1),
       .obs = RL_BOX(RL_F32, -1, 1, 2), .episode_limit = 200, .describe = describe)
