// Tuple: three actions of three kinds, and what each has to be is seen: which of three lamps are on, which of the gears -1, 0 and 1 is
// in, and where between -1 and 1 a wheel stands. A right lamp, the right gear and the wheel in its place are a fifth of the score each;
// a wheel beside it has what is left of that. One lamp is stuck where it has to be, and one of the wrong gears is barred.
//
// All is drawn anew in each episode, which is one step. Optimal score 1; legal actions at random have 0.583.
#include "rl_env.h"

enum { LAMPS = 3, GEARS = 3, LOWEST = -1 };

typedef struct {
    int32_t lamps[LAMPS], gear, stuck, barred;
    float wheel;
} Tuple;

#define ACTS(X)                                                                                                \
    X(lamps, "lamps", const int32_t, RL_MULTI_BINARY(LAMPS))                                                   \
    X(gear, "drive/gear", const int32_t, RL_DISCRETE_FROM(LOWEST, GEARS))                                      \
    X(wheel, "drive/wheel", const float, RL_BOX(RL_F32, -1, 1, 1))
RL_DICT(Acts, acts, ACTS)

static bool setup(Tuple *tuple, rl_config *config)
{
    (void)tuple;
    (void)config;
    return true;
}

static void reset(Tuple *tuple, rl_rng *rng, float *obs)
{
    uint64_t bits = rl_next(rng);
    for (int32_t i = 0; i < LAMPS; i++) obs[i] = (float)(tuple->lamps[i] = bits >> i & 1);
    int32_t gear = (int32_t)rl_below(rng, GEARS);
    tuple->gear = gear + LOWEST;
    tuple->stuck = (int32_t)rl_below(rng, LAMPS);
    tuple->barred = (gear + 1 + (int32_t)rl_below(rng, GEARS - 1)) % GEARS + LOWEST;
    tuple->wheel = rl_uniform(rng, -1, 1);
    obs[LAMPS] = (float)tuple->gear;
    obs[LAMPS + 1] = tuple->wheel;
}

static void mask(void *all, uint32_t i, uint8_t *legal)
{
    const Tuple *tuple = (const Tuple *)all + i;
    for (int32_t k = 0; k < LAMPS; k++)
        for (int32_t on = 0; on < 2; on++) *legal++ = k != tuple->stuck || on == tuple->lamps[k];
    for (int32_t gear = LOWEST; gear < LOWEST + GEARS; gear++) *legal++ = gear != tuple->barred;
}

// step shows the next panel already: what is seen at the end of an episode matters to nobody.
static void step(Tuple *tuple, rl_rng *rng, const Acts *action, float *obs, rl_result *out)
{
    int32_t right = *action->gear == tuple->gear;
    for (int32_t i = 0; i < LAMPS; i++) right += action->lamps[i] == tuple->lamps[i];
    float wheel = *action->wheel, away = wheel > tuple->wheel ? wheel - tuple->wheel : tuple->wheel - wheel;
    out->reward = ((float)right + (away < 1 ? 1 - away : 0)) / (LAMPS + 2);
    out->terminated = true;
    reset(tuple, rng, obs);
}

RL_ENV(Tuple, setup, reset, step, .name = "tuple@1", RL_ACTIONS(acts), .obs = RL_BOX(RL_F32, -1, 1, LAMPS + 2), .episode_limit = 1,
       .mask = mask)
