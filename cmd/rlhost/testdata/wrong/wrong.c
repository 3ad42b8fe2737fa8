// A walk over 64 squares that is wrong where WRONG says, or right without it: programs that run, and only look right.
#include "rl_env.h"

#define NOTHING 0
#define OVERRUN 1   // writes 40 observations where 2 are described
#define BEFORE 2    // writes the element before the first
#define UNWRITTEN 3 // leaves one observation out
#define NULLED 4    // writes through a null pointer
#define BIG_LOCAL 5 // has a local array larger than the stack
#define POINTER 6   // saves an address
#define TELLS 7     // sets the text of an error in a step, and goes on
#define LIMIT 8     // describes a limit that it does not keep
#define BIG_LOCAL_OVER_ZEROS 9 // as BIG_LOCAL, and the data is zero at first, so that the module does not tell its size
#define SLOW 10     // takes its time
#define UNSAVED 11  // has a pointer, and says that it is not saved, which is right
#define SAVED 12    // has a pointer, and saves what it points to, which is right
#define HALF 13     // has a save, and no load

#ifndef WRONG
#define WRONG NOTHING
#endif
#define POINTS (WRONG == POINTER || WRONG == UNSAVED || WRONG == SAVED || WRONG == HALF)

typedef struct {
    int32_t cell, age;
#if POINTS
    uint8_t *seen;
#else
    uint8_t seen[64];
#endif
} Walk;

#if POINTS
static uint8_t boards[64][64];
static uint32_t made;
#endif
static Walk *volatile nowhere;

static bool setup(Walk *w, rl_config *config)
{
    (void)config;
#if POINTS
    w->seen = boards[made++ % 64];
#else
    (void)w;
#endif
    return true;
}

static void look(const Walk *w, float *obs)
{
    int32_t seen = 0;
    for (uint32_t i = 0; i < 64; i++) seen += w->seen[i];
    if (WRONG != UNWRITTEN) obs[1] = (float)seen;
    for (uint32_t i = 2; WRONG == OVERRUN && i < 40; i++) obs[i] = -0.2f;
    if (WRONG == BEFORE) obs[-1] = 0.5f;
    obs[0] = (float)w->cell;
}

static void reset(Walk *w, rl_rng *rng, float *obs)
{
    for (uint32_t i = 0; i < 64; i++) w->seen[i] = 0;
    w->cell = 24 + (int32_t)rl_below(rng, 16);
    w->age = 0;
    look(w, obs);
}

#if WRONG == BIG_LOCAL || WRONG == BIG_LOCAL_OVER_ZEROS
static volatile uint8_t ballast[200000] = {WRONG == BIG_LOCAL}; // what is overwritten

static int32_t __attribute__((noinline)) path_to(int32_t cell)
{
    ballast[cell]++;
    volatile int32_t path[25000];
    for (int32_t i = 0; i < 25000; i++) path[i] = i;
    return path[cell] - cell;
}
#endif

static void step(Walk *w, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    w->cell += action[0] ? 1 : -1;
#if WRONG == BIG_LOCAL || WRONG == BIG_LOCAL_OVER_ZEROS
    w->cell += path_to(w->cell);
#endif
    w->seen[w->cell & 63] = 1;
    out->reward = w->seen[40];
    out->terminated = w->cell < 20 || w->cell > 43;
    out->truncated = ++w->age >= 40;
    static volatile uint32_t turns;
    for (uint32_t i = 0; WRONG == SLOW && i < 20000; i++) turns = turns + 1;
    if (WRONG == NULLED && w->age == 9) nowhere->age = 0;
    if (WRONG == TELLS && w->age == 3) rl_fail("no such square");
    look(w, obs);
}

#if WRONG == SAVED || WRONG == HALF
static void save(void *state, uint32_t i, uint8_t *to)
{
    const Walk *w = (const Walk *)state + i;
    __builtin_memcpy(to, &w->cell, 4);
    __builtin_memcpy(to + 4, &w->age, 4);
    __builtin_memcpy(to + 8, w->seen, 64);
}

static bool load(void *state, uint32_t i, const uint8_t *from)
{
    Walk *w = (Walk *)state + i;
    __builtin_memcpy(&w->cell, from, 4);
    __builtin_memcpy(&w->age, from + 4, 4);
    __builtin_memcpy(w->seen, from + 8, 64);
    return true;
}
#endif

RL_ENV(Walk, setup, reset, step, .name = "wrong@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 0, 2),
       .episode_limit = WRONG == LIMIT ? 10 : 40
#if WRONG == UNSAVED
       , .save = RL_NOT_SAVED
#elif WRONG == SAVED
       , .save_bytes = 72, .save = save, .load = load
#elif WRONG == HALF
       , .save = save
#endif
)
