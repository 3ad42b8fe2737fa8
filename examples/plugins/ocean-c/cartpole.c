// CartPole of PufferLib, which says nothing at its time limit.
#define RL_OCEAN_CUT(env, k) ((env)->tick == 0)
#include "rl_ocean.h"
#include "cartpole.h"

static bool setup(Cartpole *env, rl_config *config)
{
    init(env);
    return !config->failed;
}

RL_OCEAN(Cartpole, setup, .name = "ocean-cartpole@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 0, 4), .episode_limit = 200)
