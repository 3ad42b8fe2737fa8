// Squared of PufferLib: a grid with a target.
#include "rl_ocean.h"
#include "squared.h"

static bool setup(Squared *env, rl_config *config)
{
    env->size = 11;
    return !config->failed;
}

RL_OCEAN(Squared, setup, .name = "ocean-squared@1", .action = RL_DISCRETE(5), .obs = RL_BOX(RL_U8, 0, 2, 121), .episode_limit = 34)
