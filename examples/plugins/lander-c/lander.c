// Lander: a craft falls towards a pad, turns by its side engines and brakes by its main one. It is the example of rl_math.h: the pull of an
// engine is a sine and a cosine of the craft's angle, the same bits in every language.
//
// Observed are x, y, their speeds, the angle and its speed. Landed slowly, upright and near the middle it has 1, fallen or lost -1, and each
// step of an engine costs a little.
#include "rl_env.h"
#include "rl_math.h"

typedef struct {
    double x, y, vx, vy, angle, turn;
    int32_t steps;
} Lander;

static bool setup(Lander *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

static void look(const Lander *env, float *obs)
{
    obs[0] = (float)env->x;
    obs[1] = (float)env->y;
    obs[2] = (float)env->vx;
    obs[3] = (float)env->vy;
    obs[4] = (float)env->angle;
    obs[5] = (float)env->turn;
}

static void reset(Lander *env, rl_rng *rng, float *obs)
{
    env->x = (double)rl_uniform(rng, -0.5f, 0.5f);
    env->y = 1;
    env->vx = (double)rl_uniform(rng, -0.02f, 0.02f);
    env->vy = 0;
    env->angle = (double)rl_uniform(rng, -0.3f, 0.3f);
    env->turn = 0;
    env->steps = 0;
    look(env, obs);
}

static void step(Lander *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    double main = action[0] == 2 ? 0.004 : 0, side = action[0] == 1 ? 0.01 : action[0] == 3 ? -0.01 : 0;
    env->vx = env->vx - main * rl_sin(env->angle);
    env->vy = env->vy + main * rl_cos(env->angle) - 0.0015;
    env->turn = env->turn + side;
    env->x = env->x + env->vx;
    env->y = env->y + env->vy;
    env->angle = env->angle + env->turn;
    env->steps++;
    look(env, obs);
    bool down = env->y <= 0, lost = rl_abs(env->x) > 1.5 || env->y > 2 || rl_abs(env->angle) > 3;
    bool soft = env->vy > -0.04 && rl_abs(env->angle) < 0.3 && rl_abs(env->x) < 0.4;
    out->reward = down && soft ? 1 : down || lost ? -1 : action[0] ? -0.001f : 0;
    out->terminated = down || lost;
    out->truncated = env->steps >= 300;
}

static void draw(void *state, uint32_t i, rl_picture *p)
{
    const Lander *env = (const Lander *)state + i;
    rl_draw_rect(p, 0, 0, 60, 40, 0x101820);
    rl_draw_rect(p, 22, 38, 16, 2, 0x808080);
    rl_draw_disc(p, 30 + (float)env->x * 20, 36 - (float)env->y * 16, 2.5f, 0xffcc00);
}

RL_ENV(Lander, setup, reset, step, .name = "lander@1", .action = RL_DISCRETE(4), .obs = RL_BOX(RL_F32, 0, 0, 6), .episode_limit = 300,
       .picture_width = 60, .picture_height = 40, .picture_fps = 30, .draw = draw)
