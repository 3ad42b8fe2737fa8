// Tetris of PufferLib.
#include "rl_ocean.h"
#include "tetris.h"

static bool setup(Tetris *env, rl_config *config)
{
    env->n_rows = 20;
    env->n_cols = 10;
    env->deck_size = 3;
    init(env);
    return !config->failed;
}

RL_OCEAN(Tetris, setup, .name = "ocean-tetris@1", .action = RL_DISCRETE(7), .obs = RL_BOX(RL_F32, 0, 0, 20 * 10 + 6 + 7 * 4))
