// Snakes: eight of them on one board, which eat and grow. Each sees what is around its head, turned to where it goes. One that runs
// into a wall or a body is dead and gone; the others go on, until all are dead or time is up.
#include "rl_env.h"

#define SNAKES 8
#define SIDE 16
#define LONGEST 16
#define FOODS 8
#define VIEW 7 // cells to each side of the view
#define STEPS 200

typedef struct {
    uint8_t cell[SIDE][SIDE]; // what is there: 0, FOOD or a body
    uint8_t x[SNAKES][LONGEST], y[SNAKES][LONGEST]; // rings of the bodies' places
    uint8_t head[SNAKES], length[SNAKES], way[SNAKES], alive[SNAKES];
    int32_t steps;
} Snakes;

enum { FOOD = 1, BODY = 2 };

static const int8_t DX[] = {0, 1, 0, -1}, DY[] = {-1, 0, 1, 0};

static bool setup(Snakes *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

// at returns what is in a cell; what is outside of the board is like a body.
static int at(const Snakes *env, int x, int y)
{
    return x < 0 || y < 0 || x >= SIDE || y >= SIDE ? BODY : env->cell[y][x];
}

// look writes what each snake observes: food, then bodies and walls, around its head. A dead one sees nothing.
static void look(const Snakes *env, uint8_t *obs)
{
    for (int k = 0; k < SNAKES; k++, obs += 2 * VIEW * VIEW) {
        int h = env->head[k], ahead = env->way[k], right = (ahead + 1) % 4;
        for (int row = 0; row < VIEW; row++)
            for (int column = 0; column < VIEW; column++) {
                int forward = VIEW / 2 - row, side = column - VIEW / 2;
                int x = env->x[k][h] + forward * DX[ahead] + side * DX[right], y = env->y[k][h] + forward * DY[ahead] + side * DY[right];
                int is = env->alive[k] ? at(env, x, y) : 0;
                obs[row * VIEW + column] = is == FOOD;
                obs[VIEW * VIEW + row * VIEW + column] = is == BODY;
            }
    }
}

// free_cell finds a cell where nothing is; there are always some.
static void free_cell(const Snakes *env, rl_rng *rng, uint8_t *x, uint8_t *y)
{
    do {
        *x = (uint8_t)rl_below(rng, SIDE);
        *y = (uint8_t)rl_below(rng, SIDE);
    } while (env->cell[*y][*x]);
}

static void feed(Snakes *env, rl_rng *rng)
{
    uint8_t x, y;
    free_cell(env, rng, &x, &y);
    env->cell[y][x] = FOOD;
}

static void reset(Snakes *env, rl_rng *rng, uint8_t *obs)
{
    __builtin_memset(env, 0, sizeof *env);
    for (int k = 0; k < SNAKES; k++) {
        free_cell(env, rng, &env->x[k][0], &env->y[k][0]);
        env->cell[env->y[k][0]][env->x[k][0]] = BODY;
        env->way[k] = (uint8_t)rl_below(rng, 4);
        env->length[k] = env->alive[k] = 1;
    }
    for (int i = 0; i < FOODS; i++) feed(env, rng);
    look(env, obs);
}

// lose takes a snake's last place off the board.
static void lose(Snakes *env, int k)
{
    int tail = (env->head[k] + LONGEST + 1 - env->length[k]--) % LONGEST;
    env->cell[env->y[k][tail]][env->x[k][tail]] = 0;
}

// advance moves a snake by one cell and returns its reward.
static float advance(Snakes *env, rl_rng *rng, int k, int turn)
{
    env->way[k] = (uint8_t)((env->way[k] + turn + 3) % 4); // 0 is to the left, 1 straight on, 2 to the right
    int x = env->x[k][env->head[k]] + DX[env->way[k]], y = env->y[k][env->head[k]] + DY[env->way[k]], is = at(env, x, y);
    if (is == BODY) {
        while (env->length[k]) lose(env, k);
        env->alive[k] = 0;
        return -1;
    }
    if (is != FOOD || env->length[k] == LONGEST) lose(env, k);
    env->head[k] = (uint8_t)((env->head[k] + 1) % LONGEST);
    env->x[k][env->head[k]] = (uint8_t)x;
    env->y[k][env->head[k]] = (uint8_t)y;
    env->length[k]++;
    env->cell[y][x] = BODY;
    if (is == FOOD) feed(env, rng);
    return is == FOOD;
}

static void step(Snakes *env, rl_rng *rng, const int32_t *action, uint8_t *obs, rl_result *out)
{
    env->steps++;
    for (int k = 0; k < SNAKES; k++) {
        if (!env->alive[k]) continue;
        out[k].reward = advance(env, rng, k, action[k]);
        out[k].terminated = !env->alive[k];
        out[k].truncated = env->steps >= STEPS;
    }
    look(env, obs);
}

RL_ENV(Snakes, setup, reset, step, .name = "snake@1", .action = RL_DISCRETE(3), .obs = RL_BOX(RL_U8, 0, 1, 2, VIEW, VIEW),
       .episode_limit = STEPS, .agents = SNAKES, .apart = true)
