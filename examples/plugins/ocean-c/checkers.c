// Checkers of PufferLib, whose board is its observation.
#include "rl_ocean.h"
#include "checkers.h"

static bool setup(Checkers *env, rl_config *config)
{
    env->size = 8;
    return !config->failed;
}

RL_OCEAN(Checkers, setup, .name = "ocean-checkers@1", .action = RL_DISCRETE(512), .obs = RL_BOX(RL_U8, 0, 4, 64))
