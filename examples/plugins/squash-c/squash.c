// Squash: a paddle at the foot of a screen of 84 x 84 pixels keeps a ball in play, a reward of 1 each time that it gets it; the
// episode ends when it misses. The observation is one grey picture, so where the ball is going takes two of them: a policy
// is given several by its frame stack. It is here to measure pictures: drawing one is a fill and two small shapes.
//
//	max_steps  truncate an episode after so many steps (1000)
//
// Actions: stay, left, right.
#include "rl_env.h"

enum { SIDE = 84, WIDTH = 16, HEIGHT = 3, PADDLE_ROW = 78, BALL = 4, FALL = 3, DRIFT = 3, PACE = 4, STAY = 0, LEFT = 1, RIGHT = 2, ACTIONS };
enum { GREY = 128, WHITE = 255 };

typedef struct {
    int32_t row, column, down, right; // of the ball's upper left corner; down and right are pixels a step
    int32_t paddle;                   // its leftmost column
    int32_t steps, max_steps;
} Squash;

static bool setup(Squash *s, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 1000);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    s->max_steps = (int32_t)max_steps;
    return true;
}

static void look(const Squash *s, uint8_t *obs)
{
    __builtin_memset(obs, 0, SIDE * SIDE);
    for (int32_t i = 0; i < HEIGHT; i++) __builtin_memset(obs + (PADDLE_ROW + i) * SIDE + s->paddle, GREY, WIDTH);
    for (int32_t i = 0; i < BALL; i++) __builtin_memset(obs + (s->row + i) * SIDE + s->column, WHITE, BALL);
}

static void reset(Squash *s, rl_rng *rng, uint8_t *obs)
{
    s->row = 0;
    s->column = (int32_t)rl_below(rng, SIDE - BALL + 1);
    s->down = FALL;
    s->right = (int32_t)rl_below(rng, 2 * DRIFT + 1) - DRIFT;
    s->paddle = (SIDE - WIDTH) / 2;
    s->steps = 0;
    look(s, obs);
}

static int32_t between(int32_t low, int32_t v, int32_t high) { return v < low ? low : v > high ? high : v; }

// fly moves the ball and turns it round at the left, the right and the upper side.
static void fly(Squash *s)
{
    int32_t row = s->row + s->down, column = s->column + s->right;
    s->row = between(0, row, SIDE - BALL);
    s->column = between(0, column, SIDE - BALL);
    if (row < 0) s->down = FALL;
    if (column != s->column) s->right = -s->right;
}

// hit sends the ball back up where the paddle is below it: straight from its middle, to the side from its ends.
static bool hit(Squash *s)
{
    int32_t off = s->column + BALL / 2 - (s->paddle + WIDTH / 2); // of the two middles
    if (off < -(WIDTH + BALL) / 2 || off > (WIDTH + BALL) / 2) return false;
    s->row = PADDLE_ROW - BALL;
    s->down = -FALL;
    s->right = off / 3; // -DRIFT to DRIFT
    return true;
}

static void step(Squash *s, rl_rng *rng, const int32_t *action, uint8_t *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    s->paddle = between(0, s->paddle + (*action == LEFT ? -PACE : *action == RIGHT ? PACE : 0), SIDE - WIDTH);
    fly(s);
    if (s->down > 0 && s->row + BALL > PADDLE_ROW) {
        bool got = hit(s);
        out->reward = got;
        out->terminated = !got;
    }
    s->steps++;
    out->truncated = s->steps >= s->max_steps;
    look(s, obs);
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 1000);
    return true;
}

RL_ENV(Squash, setup, reset, step, .name = "squash@1", .action = RL_DISCRETE(ACTIONS), .obs = RL_IMAGE(SIDE, SIDE, 1),
       .episode_limit = 1000, .describe = describe)
