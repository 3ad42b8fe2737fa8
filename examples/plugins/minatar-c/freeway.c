// Freeway as MinAtar plays it (Young and Tian 2019, arXiv 1903.03176), written anew from their description: on a board of 10 x 10
// cells a chicken goes up across eight lanes of cars, a reward of 1 each time that it arrives; then it begins again below, and the cars
// have other speeds. A car that hits it sends it back to the lowest row. It does not become harder.
//
//	sticky     probability that an action is the one before once more, 0 to 1 (0.1)
//	max_steps  truncate an episode after so many steps (2500)
//
// The observation has a plane of 0 or 1 for each of: the chicken, cars, and the cells behind cars, in one of five planes by how
// fast the car is, the fastest first. Actions: stay, up, down; the chicken moves in every third step at most.
#include "rl_env.h"

enum { SIDE = 10, CELLS = SIDE * SIDE, LANES = 8, COLUMN = 4, REST = 3, SPEEDS = 5, STAY = 0, UP = 1, DOWN = 2, ACTIONS };
enum { CHICKEN, CARS, TRAIL, PLANES = TRAIL + SPEEDS };

typedef struct {
    int32_t column, wait; // wait: steps that it stands still before it moves
    int32_t pause, right; // pause: its wait after each move; right is 1 or -1
} Car;

typedef struct {
    int32_t row, rest; // of the chicken; rest: steps before it can move again
    int32_t action, steps, max_steps; // action: the last one that was played
    float sticky;
    Car lane[LANES]; // from board row 1 down
} Freeway;

static bool setup(Freeway *f, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 2500);
    f->sticky = (float)rl_arg_f64(config, "sticky", 0.1);
    if (!(f->sticky >= 0 && f->sticky <= 1)) return rl_fail("sticky must be 0 to 1");
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    f->max_steps = (int32_t)max_steps;
    return true;
}

// around returns a column of the board, whose sides are joined.
static int32_t around(int32_t column) { return (column + SIDE) % SIDE; }

static void look(const Freeway *f, uint8_t *obs)
{
    __builtin_memset(obs, 0, CELLS * PLANES);
    obs[(f->row * SIDE + COLUMN) * PLANES + CHICKEN] = 1;
    for (int32_t i = 0; i < LANES; i++) {
        const Car *car = &f->lane[i];
        uint8_t *lane = obs + (i + 1) * SIDE * PLANES;
        lane[car->column * PLANES + CARS] = 1;
        lane[around(car->column - car->right) * PLANES + TRAIL + car->pause - 1] = 1;
    }
}

static void speed_up(Freeway *f, rl_rng *rng)
{
    for (int32_t i = 0; i < LANES; i++) {
        Car *car = &f->lane[i];
        car->pause = car->wait = 1 + (int32_t)rl_below(rng, SPEEDS);
        car->right = rl_below(rng, 2) ? 1 : -1;
    }
}

static void reset(Freeway *f, rl_rng *rng, uint8_t *obs)
{
    f->row = SIDE - 1;
    f->rest = REST;
    f->action = f->steps = 0;
    for (int32_t i = 0; i < LANES; i++) f->lane[i].column = 0;
    speed_up(f, rng);
    look(f, obs);
}

static void move_chicken(Freeway *f)
{
    if (f->rest) {
        f->rest--;
        return;
    }
    if (f->action == STAY) return;
    f->rest = REST - 1;
    f->row += f->action == UP ? -1 : f->row < SIDE - 1;
}

// drive moves a car, or has it wait, and sends the chicken back where the car is in its cell before or after that.
static void drive(Freeway *f, int32_t row, Car *car)
{
    if (car->column == COLUMN && row == f->row) f->row = SIDE - 1;
    if (car->wait) {
        car->wait--;
        return;
    }
    car->wait = car->pause;
    car->column = around(car->column + car->right);
    if (car->column == COLUMN && row == f->row) f->row = SIDE - 1;
}

static void step(Freeway *f, rl_rng *rng, const int32_t *action, uint8_t *obs, rl_result *out)
{
    if (rl_uniform(rng, 0, 1) >= f->sticky) f->action = *action;
    move_chicken(f);
    if (f->row == 0) {
        out->reward = 1;
        f->row = SIDE - 1;
        speed_up(f, rng);
    }
    for (int32_t i = 0; i < LANES; i++) drive(f, i + 1, &f->lane[i]);
    f->steps++;
    out->truncated = f->steps >= f->max_steps;
    look(f, obs);
}

#define CELL 16 // pixels

static void square(rl_picture *p, int32_t row, int32_t column, uint32_t colour)
{
    rl_draw_rect(p, (float)(column * CELL), (float)(row * CELL), CELL - 1, CELL - 1, colour);
}

static void draw(void *state, uint32_t i, rl_picture *p)
{
    static const uint32_t by_speed[SPEEDS] = {0xff3030, 0xe06030, 0xc08040, 0x8080a0, 0x6060c0}; // the fastest first
    const Freeway *f = (const Freeway *)state + i;
    rl_draw_rect(p, 0, CELL, SIDE * CELL, LANES * CELL, 0x303030);
    for (int32_t k = 0; k < LANES; k++) square(p, k + 1, f->lane[k].column, by_speed[f->lane[k].pause - 1]);
    square(p, f->row, COLUMN, 0xf0e060);
}

// render shows cars as the way that they drive, and the chicken as @.
static uint32_t render(void *state, uint32_t i, uint32_t mode, char *to, uint32_t cap)
{
    const Freeway *f = (const Freeway *)state + i;
    char cells[CELLS];
    (void)mode;
    __builtin_memset(cells, '.', sizeof cells);
    for (int32_t k = 0; k < LANES; k++) cells[(k + 1) * SIDE + f->lane[k].column] = f->lane[k].right > 0 ? '>' : '<';
    cells[f->row * SIDE + COLUMN] = '@';
    return rl_put_board(cells, SIDE, SIDE, to, cap);
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 2500);
    return true;
}

RL_ENV(Freeway, setup, reset, step, .name = "minatar-freeway@1", .action = RL_DISCRETE(ACTIONS),
       .obs = {.dtype = RL_U8, .rank = 3, .shape = {SIDE, SIDE, PLANES}, .high = 1, .flags = RL_TENSOR_IMAGE_HWC, .scale = 1},
       .episode_limit = 2500, .picture_width = SIDE * CELL, .picture_height = SIDE * CELL, .picture_fps = 20, .keys = "none=0\nup=1\ndown=2", .describe = describe,
       .render = render, .draw = draw)
