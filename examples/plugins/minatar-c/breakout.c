// Breakout as MinAtar plays it (Young and Tian 2019, arXiv 1903.03176), written anew from their description: on a board of 10 x 10
// cells a paddle in the lowest row keeps a ball in play that moves along diagonals and breaks three rows of bricks, a reward of 1
// each. When the ball comes down and no brick is left there are three new rows. The episode ends when the paddle misses the ball. It does
// not become harder.
//
//	sticky     probability that an action is the one before once more, 0 to 1 (0.1)
//	max_steps  truncate an episode after so many steps (1000)
//
// The observation has a plane of 0 or 1 for each of: paddle, ball, where the ball was a step before, bricks. Actions: stay, left, right.
#include "rl_env.h"

enum { SIDE = 10, CELLS = SIDE * SIDE, WALL = 3, FULL = (1 << SIDE) - 1, STAY = 0, LEFT = 1, RIGHT = 2, ACTIONS };
enum { PADDLE, BALL, TRAIL, BRICK, PLANES };

typedef struct {
    int32_t paddle;                         // its column
    int32_t row, column, down, right;       // of the ball; down and right are 1 or -1
    int32_t trail_row, trail_column;
    int32_t wall[WALL];                     // the bit of each column with a brick, from board row 1 down
    int32_t struck;                         // the step before broke a brick, so that this one cannot
    int32_t action, steps, max_steps;       // action: the last one that was played
    float sticky;
} Breakout;

static bool setup(Breakout *b, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 1000);
    b->sticky = (float)rl_arg_f64(config, "sticky", 0.1);
    if (!(b->sticky >= 0 && b->sticky <= 1)) return rl_fail("sticky must be 0 to 1");
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    b->max_steps = (int32_t)max_steps;
    return true;
}

static void look(const Breakout *b, uint8_t *obs)
{
    __builtin_memset(obs, 0, CELLS * PLANES);
    obs[((SIDE - 1) * SIDE + b->paddle) * PLANES + PADDLE] = 1;
    obs[(b->row * SIDE + b->column) * PLANES + BALL] = 1;
    obs[(b->trail_row * SIDE + b->trail_column) * PLANES + TRAIL] = 1;
    for (int32_t row = 0; row < WALL; row++)
        for (int32_t column = 0; column < SIDE; column++)
            obs[((row + 1) * SIDE + column) * PLANES + BRICK] = b->wall[row] >> column & 1;
}

static void build_wall(Breakout *b)
{
    for (int32_t row = 0; row < WALL; row++) b->wall[row] = FULL;
}

static void reset(Breakout *b, rl_rng *rng, uint8_t *obs)
{
    bool from_right = rl_below(rng, 2);
    b->paddle = 4;
    b->row = b->trail_row = 3;
    b->column = b->trail_column = from_right ? SIDE - 1 : 0;
    b->down = 1;
    b->right = from_right ? -1 : 1;
    b->struck = b->action = b->steps = 0;
    build_wall(b);
    look(b, obs);
}

// bounce_up sends the ball back up from the row that it was in.
static void bounce_up(Breakout *b)
{
    b->row = b->trail_row;
    b->down = -1;
}

// at_paddle is for a ball that has come into the lowest row. It returns whether the paddle has got it: from above, or from the
// side, which turns it round.
static bool at_paddle(Breakout *b)
{
    if (!(b->wall[0] | b->wall[1] | b->wall[2])) build_wall(b);
    if (b->trail_column != b->paddle && b->column != b->paddle) return false;
    if (b->trail_column != b->paddle) b->right = -b->right;
    bounce_up(b);
    return true;
}

// break_brick returns whether there is a brick where the ball is. The ball breaks it and turns round, unless it broke one in the
// step before: then it flies on.
static bool break_brick(Breakout *b, float *reward)
{
    int32_t row = b->row - 1, bit = 1 << b->column;
    if (row < 0 || row >= WALL || !(b->wall[row] & bit)) return false;
    if (b->struck) return true;
    b->wall[row] &= ~bit;
    *reward += 1;
    b->row = b->trail_row;
    b->down = -b->down;
    return true;
}

static void step(Breakout *b, rl_rng *rng, const int32_t *action, uint8_t *obs, rl_result *out)
{
    if (rl_uniform(rng, 0, 1) >= b->sticky) b->action = *action;
    b->paddle += b->action == LEFT ? -(b->paddle > 0) : b->action == RIGHT && b->paddle < SIDE - 1;
    b->trail_row = b->row;
    b->trail_column = b->column;
    b->row += b->down;
    b->column += b->right;
    if (b->column < 0 || b->column >= SIDE) {
        b->column = b->trail_column;
        b->right = -b->right;
    }
    bool struck = false;
    if (b->row < 0) {
        b->row = 0;
        b->down = 1;
    } else {
        struck = break_brick(b, &out->reward);
        if (b->row == SIDE - 1) out->terminated = !at_paddle(b);
    }
    b->struck = struck;
    b->steps++;
    out->truncated = b->steps >= b->max_steps;
    look(b, obs);
}

#define CELL 16 // pixels

static void square(rl_picture *p, int32_t row, int32_t column, uint32_t colour)
{
    rl_draw_rect(p, (float)(column * CELL), (float)(row * CELL), CELL - 1, CELL - 1, colour);
}

static void draw(void *state, uint32_t i, rl_picture *p)
{
    static const uint32_t bricks[WALL] = {0xc84848, 0xc6a03c, 0x48a048};
    const Breakout *b = (const Breakout *)state + i;
    for (int32_t row = 0; row < WALL; row++)
        for (int32_t column = 0; column < SIDE; column++)
            if (b->wall[row] >> column & 1) square(p, row + 1, column, bricks[row]);
    square(p, SIDE - 1, b->paddle, 0x4848c8);
    square(p, b->trail_row, b->trail_column, 0x606060);
    square(p, b->row, b->column, 0xffffff);
}

static uint32_t render(void *state, uint32_t i, uint32_t mode, char *to, uint32_t cap)
{
    const Breakout *b = (const Breakout *)state + i;
    char cells[CELLS];
    (void)mode;
    __builtin_memset(cells, '.', sizeof cells);
    for (int32_t row = 0; row < WALL; row++)
        for (int32_t column = 0; column < SIDE; column++)
            if (b->wall[row] >> column & 1) cells[(row + 1) * SIDE + column] = '#';
    cells[(SIDE - 1) * SIDE + b->paddle] = '=';
    cells[b->row * SIDE + b->column] = 'o';
    return rl_put_board(cells, SIDE, SIDE, to, cap);
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 1000);
    return true;
}

RL_ENV(Breakout, setup, reset, step, .name = "minatar-breakout@1", .action = RL_DISCRETE(ACTIONS),
       .obs = {.dtype = RL_U8, .rank = 3, .shape = {SIDE, SIDE, PLANES}, .high = 1, .flags = RL_TENSOR_IMAGE_HWC, .scale = 1},
       .episode_limit = 1000, .picture_width = SIDE * CELL, .picture_height = SIDE * CELL, .picture_fps = 10, .keys = "none=0\nleft=1\nright=2", .describe = describe,
       .render = render, .draw = draw)
