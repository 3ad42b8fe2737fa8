// Taxi, Gymnasium's Taxi-v4 without rain and without fickle passengers: a taxi drives to a passenger, takes him along to
// one of four places, and sets him down. The action mask allows what changes something.
//
//	max_steps    truncate an episode after so many steps (200)
//	observation  compact: f32, four numbers one-hot: row (5), column (5), passenger (5, the last is the taxi), destination (4)
//	             number:  i32, Gymnasium's number of the state, 0 to 499
#include "rl_env.h"

enum { SOUTH, NORTH, EAST, WEST, PICK_UP, SET_DOWN, ACTIONS };
enum { SIDE = 5, PLACES = 4, ABOARD = 4, COMPACT = SIDE + SIDE + PLACES + 1 + PLACES };

typedef struct {
    int32_t row, column, passenger, destination;
    int32_t steps, max_steps, number; // number: how the state is observed
} Taxi;

static const int32_t places[PLACES][2] = {{0, 0}, {0, 4}, {4, 0}, {4, 3}};

// wall[row] has the bit of each column with a wall to its east.
static const uint8_t wall[SIDE] = {1 << 1, 1 << 1, 0, 1 << 0 | 1 << 2, 1 << 0 | 1 << 2};

static bool numbered(rl_config *config)
{
    rl_text kind = rl_arg_text(config, "observation", "compact");
    bool number = kind.len == 6 && !__builtin_memcmp(kind.at, "number", 6);
    if (!number && !(kind.len == 7 && !__builtin_memcmp(kind.at, "compact", 7))) rl_arg_bad(config, "observation", ": want compact or number");
    return number;
}

static bool setup(Taxi *taxi, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 200);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    taxi->max_steps = (int32_t)max_steps;
    taxi->number = numbered(config);
    return true;
}

static void look(const Taxi *taxi, void *obs)
{
    if (taxi->number) {
        *(int32_t *)obs = ((taxi->row * SIDE + taxi->column) * (PLACES + 1) + taxi->passenger) * PLACES + taxi->destination;
        return;
    }
    float *hot = (float *)obs;
    for (uint32_t i = 0; i < COMPACT; i++) hot[i] = 0;
    hot[taxi->row] = 1;
    hot[SIDE + taxi->column] = 1;
    hot[2 * SIDE + taxi->passenger] = 1;
    hot[2 * SIDE + PLACES + 1 + taxi->destination] = 1;
}

static void reset(Taxi *taxi, rl_rng *rng, void *obs)
{
    taxi->row = (int32_t)rl_below(rng, SIDE);
    taxi->column = (int32_t)rl_below(rng, SIDE);
    taxi->passenger = (int32_t)rl_below(rng, PLACES);
    taxi->destination = (taxi->passenger + 1 + (int32_t)rl_below(rng, PLACES - 1)) % PLACES;
    taxi->steps = 0;
    look(taxi, obs);
}

// at returns the place where the taxi is, or -1.
static int32_t at(const Taxi *taxi)
{
    for (int32_t i = 0; i < PLACES; i++)
        if (taxi->row == places[i][0] && taxi->column == places[i][1]) return i;
    return -1;
}

static bool east_open(int32_t row, int32_t column) { return column < SIDE - 1 && !(wall[row] >> column & 1); }

static void mask(void *all, uint32_t i, uint8_t *legal)
{
    const Taxi *taxi = (const Taxi *)all + i;
    int32_t place = at(taxi);
    legal[SOUTH] = taxi->row < SIDE - 1;
    legal[NORTH] = taxi->row > 0;
    legal[EAST] = east_open(taxi->row, taxi->column);
    legal[WEST] = taxi->column > 0 && east_open(taxi->row, taxi->column - 1);
    legal[PICK_UP] = place >= 0 && taxi->passenger == place;
    legal[SET_DOWN] = place >= 0 && taxi->passenger == ABOARD;
}

static void step(Taxi *taxi, rl_rng *rng, const int32_t *action, void *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    int32_t place = at(taxi);
    out->reward = -1;
    switch (*action) {
    case SOUTH: taxi->row += taxi->row < SIDE - 1; break;
    case NORTH: taxi->row -= taxi->row > 0; break;
    case EAST: taxi->column += east_open(taxi->row, taxi->column); break;
    case WEST: taxi->column -= taxi->column > 0 && east_open(taxi->row, taxi->column - 1); break;
    case PICK_UP:
        if (place >= 0 && taxi->passenger == place) taxi->passenger = ABOARD;
        else out->reward = -10;
        break;
    default:
        if (place < 0 || taxi->passenger != ABOARD) {
            out->reward = -10;
            break;
        }
        taxi->passenger = place;
        out->terminated = place == taxi->destination;
        if (out->terminated) out->reward = 20;
    }
    taxi->steps++;
    out->truncated = taxi->steps >= taxi->max_steps;
    look(taxi, obs);
}

static bool describe(rl_config *config, rl_env *env)
{
    static const rl_space number = {.dtype = RL_I32, .n = SIDE * SIDE * (PLACES + 1) * PLACES};
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 200);
    if (numbered(config)) env->obs = number;
    return true;
}

RL_ENV(Taxi, setup, reset, step, .name = "taxi@1", .action = RL_DISCRETE(ACTIONS), .obs = RL_BOX(RL_F32, 0, 1, COMPACT),
       .episode_limit = 200, .describe = describe, .mask = mask)
