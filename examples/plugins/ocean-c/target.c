// Target of PufferLib: puffers that swim to stars, with two numbers as an action.
#include "rl_ocean.h"
#include "target.h"

static bool setup(Target *env, rl_config *config)
{
    env->width = 1080, env->height = 720;
    env->num_agents = 8, env->num_goals = 4;
    init(env);
    return !config->failed;
}

RL_OCEAN(Target, setup, .name = "ocean-target@1", .action = RL_MULTI_DISCRETE(9, 5), .obs = RL_BOX(RL_F32, 0, 0, 28), .agents = 8)
