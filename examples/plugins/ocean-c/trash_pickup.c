// Trash pickup of PufferLib: four agents, whose episodes end together.
#include "rl_ocean.h"
#include "trash_pickup.h"

static bool setup(CTrashPickupEnv *env, rl_config *config)
{
    env->num_agents = 4, env->grid_size = 10;
    env->num_trash = 15, env->num_bins = 2;
    env->max_steps = 150, env->agent_sight_range = 5;
    initialize_env(env);
    return !config->failed;
}

RL_OCEAN(CTrashPickupEnv, setup, .name = "ocean-trash-pickup@1", .action = RL_DISCRETE(4), .obs = RL_BOX(RL_I8, 0, 1, 605),
         .episode_limit = 150, .agents = 4)
