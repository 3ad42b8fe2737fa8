// Snake of PufferLib: sixteen agents, each of which begins anew when it dies.
#define RL_OCEAN_END(env, k) ((env)->rewards[k] == (env)->reward_death) // it leaves terminals alone
#include "rl_ocean.h"
#include "snake.h"

static bool setup(CSnake *env, rl_config *config)
{
    env->width = env->height = 40;
    env->num_snakes = 16, env->food = 64, env->vision = 5, env->max_snake_length = 64;
    env->leave_corpse_on_death = true;
    env->reward_food = env->reward_corpse = 0.1f, env->reward_death = -1;
    init_csnake(env);
    return !config->failed;
}

RL_OCEAN(CSnake, setup, .name = "ocean-snake@1", .action = RL_DISCRETE(4), .obs = RL_BOX(RL_I8, 0, 8, 11, 11), .agents = 16, .respawn = true)
