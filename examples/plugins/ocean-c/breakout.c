// Breakout of PufferLib.
#include "rl_ocean.h"
#include "breakout.h"

static bool setup(Breakout *env, rl_config *config)
{
    env->frameskip = 4;
    env->width = 576, env->height = 330;
    env->paddle_width = 62, env->paddle_height = 8;
    env->ball_width = env->ball_height = 32;
    env->brick_width = 32, env->brick_height = 12;
    env->brick_rows = 6, env->brick_cols = 18;
    init(env);
    return !config->failed;
}

RL_OCEAN(Breakout, setup, .name = "ocean-breakout@1", .action = RL_DISCRETE(3), .obs = RL_BOX(RL_F32, 0, 0, 118))
