// Connect Four of PufferLib, against a player of its own.
#include "rl_ocean.h"
#include "connect4.h"

static bool setup(CConnect4 *env, rl_config *config)
{
    init(env);
    return !config->failed;
}

RL_OCEAN(CConnect4, setup, .name = "ocean-connect4@1", .action = RL_DISCRETE(7), .obs = RL_BOX(RL_F32, -1, 1, 42), .episode_limit = 42)
