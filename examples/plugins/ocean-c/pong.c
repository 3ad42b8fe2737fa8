// Pong of PufferLib, whose actions are floats.
#include "rl_ocean.h"
#include "pong.h"

static bool setup(Pong *env, rl_config *config)
{
    env->width = 500, env->height = 640;
    env->paddle_width = 20, env->paddle_height = 70, env->paddle_speed = 8;
    env->ball_width = env->ball_height = 32;
    env->ball_initial_speed_x = 10, env->ball_initial_speed_y = 1;
    env->ball_max_speed_y = 13, env->ball_speed_y_increment = 3;
    env->max_score = (unsigned)rl_arg_i64(config, "max_score", 21);
    env->frameskip = 8;
    init(env);
    return true;
}

RL_OCEAN(Pong, setup, .name = "ocean-pong@1", .action = RL_DISCRETE(3), .obs = RL_BOX(RL_F32, 0, 0, 8))
