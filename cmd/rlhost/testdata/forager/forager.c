// A forager walks over a field of 5 × 5 and picks up gold until it has three pieces. It observes several things, has a discount
// of its own, and tells how much it has found.
#include "rl_env.h"

enum { SIDE = 5, MAP = 0, GOLD = 1, PLACE = 2 };

typedef struct {
    int32_t row, column, gold_row, gold_column, gold, steps;
} Forager;

static const rl_named seen[] = {
    {"map", RL_BOX(RL_U8, 0, 2, SIDE, SIDE)}, {"inventory/gold", RL_DISCRETE(4)}, {"place", RL_BOX(RL_F32, 0, 1, 2)}};

static const rl_figure told[] = {{"found", RL_TENSOR_SUM}, {"gold", RL_TENSOR_EPISODE}};

static bool setup(Forager *f, rl_config *config)
{
    (void)f, (void)config;
    return true;
}

static void look(const Forager *f, void *const *obs)
{
    uint8_t *map = (uint8_t *)obs[MAP];
    float *place = (float *)obs[PLACE];
    for (int32_t i = 0; i < SIDE * SIDE; i++) map[i] = 0;
    map[f->gold_row * SIDE + f->gold_column] = 1;
    map[f->row * SIDE + f->column] = 2;
    *(int32_t *)obs[GOLD] = f->gold;
    place[0] = (float)f->row / (SIDE - 1);
    place[1] = (float)f->column / (SIDE - 1);
}

static void bury(Forager *f, rl_rng *rng)
{
    f->gold_row = (int32_t)rl_below(rng, SIDE);
    f->gold_column = (int32_t)rl_below(rng, SIDE);
}

static void reset(Forager *f, rl_rng *rng, void *const *obs)
{
    f->row = f->column = f->gold = f->steps = 0;
    bury(f, rng);
    look(f, obs);
}

static void mask(void *all, uint32_t i, uint8_t *legal)
{
    const Forager *f = (const Forager *)all + i;
    legal[0] = f->row > 0;
    legal[1] = f->row < SIDE - 1;
    legal[2] = f->column > 0;
    legal[3] = f->column < SIDE - 1;
}

static void step(Forager *f, rl_rng *rng, const int32_t *action, void *const *obs, rl_result *out)
{
    f->row += (*action == 1 && f->row < SIDE - 1) - (*action == 0 && f->row > 0);
    f->column += (*action == 3 && f->column < SIDE - 1) - (*action == 2 && f->column > 0);
    if (f->row == f->gold_row && f->column == f->gold_column) {
        f->gold++;
        out->reward = 1;
        bury(f, rng);
    }
    out->discount = 0.75f;
    out->figures[0] = out->reward;
    out->figures[1] = (float)f->gold;
    out->terminated = f->gold == 3;
    out->truncated = ++f->steps >= 60;
    look(f, obs);
}

RL_ENV(Forager, setup, reset, step, .name = "forager@1", .action = RL_DISCRETE(4), RL_OBSERVATIONS(seen),
       RL_FIGURES(told), .discount = true, .episode_limit = 60, .mask = mask)
