// Squared: from the centre of a board of 7 x 7 cells a piece moves like a king in chess. It has to reach targets on the rim, and
// is back in the centre after each. It has as many steps as the shortest ways to all of them take, and then the game is over.
//
//	targets  how many, 1 to 24, at random places of the rim (1)
//
// The observation has -1 where the piece is, 1 where a target is and 0 elsewhere. A step that comes nearer to a target than any since the
// centre is rewarded, one cell with 1/(3 targets). Optimal score 1.
#include "rl_env.h"

enum { REACH = 3, SIDE = 2 * REACH + 1, CELLS = SIDE * SIDE, RIM = 4 * (SIDE - 1), MOVES = 8 };

typedef struct {
    uint64_t target; // the bit of each cell that has one
    int32_t row, column, nearest; // nearest: that the piece has come to a target since it was in the centre
    int32_t steps, targets;
} Squared;

static int64_t targets(rl_config *config) { return rl_arg_i64(config, "targets", 1); }

static bool setup(Squared *squared, rl_config *config)
{
    int64_t n = targets(config);
    if (n < 1 || n > RIM) return rl_fail("targets must be 1 to 24");
    squared->targets = (int32_t)n;
    return true;
}

static void look(const Squared *squared, float *obs)
{
    for (uint32_t i = 0; i < CELLS; i++) obs[i] = 0;
    for (uint64_t left = squared->target; left; left &= left - 1) obs[__builtin_ctzll(left)] = 1;
    obs[squared->row * SIDE + squared->column] = -1;
}

static void centre(Squared *squared)
{
    squared->row = squared->column = squared->nearest = REACH;
}

static bool rim(uint32_t cell)
{
    uint32_t row = cell / SIDE, column = cell % SIDE;
    return row == 0 || row == SIDE - 1 || column == 0 || column == SIDE - 1;
}

static void reset(Squared *squared, rl_rng *rng, float *obs)
{
    uint32_t places = RIM, left = (uint32_t)squared->targets;
    squared->target = 0;
    squared->steps = 0;
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        if (!rim(cell)) continue;
        if (rl_below(rng, places--) >= left) continue;
        squared->target |= (uint64_t)1 << cell;
        left--;
    }
    centre(squared);
    look(squared, obs);
}

static int32_t apart(int32_t a, int32_t b) { return a < b ? b - a : a - b; }

// distance returns how many moves the nearest target is away.
static int32_t distance(const Squared *squared)
{
    int32_t least = SIDE;
    for (uint64_t left = squared->target; left; left &= left - 1) {
        int32_t cell = __builtin_ctzll(left);
        int32_t rows = apart(cell / SIDE, squared->row), columns = apart(cell % SIDE, squared->column);
        int32_t moves = rows > columns ? rows : columns;
        if (moves < least) least = moves;
    }
    return least;
}

// within returns a row or column that lies on the board.
static int32_t within(int32_t v) { return v < 0 ? 0 : v >= SIDE ? SIDE - 1 : v; }

// action: 0 is up, the others follow clockwise.
static void step(Squared *squared, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    static const int8_t rows[MOVES] = {-1, -1, 0, 1, 1, 1, 0, -1}, columns[MOVES] = {0, 1, 1, 1, 0, -1, -1, -1};
    (void)rng; // nothing is random after the start
    squared->row = within(squared->row + rows[*action]);
    squared->column = within(squared->column + columns[*action]);
    squared->steps++;
    int32_t now = distance(squared);
    if (now < squared->nearest) {
        out->reward = (float)(squared->nearest - now) / (float)(REACH * squared->targets);
        squared->nearest = now;
    }
    if (now == 0) {
        squared->target &= ~((uint64_t)1 << (squared->row * SIDE + squared->column));
        centre(squared);
    }
    out->terminated = !squared->target || squared->steps >= REACH * squared->targets; // what is missed is lost
    look(squared, obs);
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)(REACH * targets(config));
    return true;
}

RL_ENV(Squared, setup, reset, step, .name = "squared@1", .action = RL_DISCRETE(MOVES), .obs = RL_BOX(RL_F32, -1, 1, SIDE, SIDE),
       .episode_limit = REACH, .describe = describe)
