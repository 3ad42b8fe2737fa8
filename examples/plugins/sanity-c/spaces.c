// Spaces: three observations of three kinds and a question about each, answered at once: is more than half of a picture of 5 x 5
// pixels white, is the sum of five numbers more than 0, and which of three clues is it. A right answer is a third of the score.
//
// The picture is of 0 and 255, the numbers are -10 to 10, all at random in each episode, which is one step. Optimal score 1; answers at
// random have 0.444.
#include "rl_env.h"

enum { PICTURE, NUMBERS, CLUE, QUESTIONS };
enum { SIDE = 5, PIXELS = SIDE * SIDE, COUNT = 5, MOST = 10, CLUES = 3 };

typedef struct {
    int32_t answer[QUESTIONS];
} Spaces;

#define SEEN(X)                                                                                                \
    X(picture, "picture", uint8_t, RL_IMAGE(SIDE, SIDE, 1))                                                    \
    X(numbers, "notes/numbers", int8_t, RL_BOX(RL_I8, -MOST, MOST, COUNT))                                     \
    X(clue, "notes/clue", int32_t, RL_DISCRETE(CLUES))
RL_DICT(Seen, seen, SEEN)

static bool setup(Spaces *spaces, rl_config *config)
{
    (void)spaces;
    (void)config;
    return true;
}

static void reset(Spaces *spaces, rl_rng *rng, const Seen *obs)
{
    int32_t white = 0, sum = 0;
    uint64_t bits = rl_next(rng);
    for (int32_t i = 0; i < PIXELS; i++) {
        int32_t lit = bits >> i & 1;
        white += lit;
        obs->picture[i] = lit ? 255 : 0;
    }
    for (int32_t i = 0; i < COUNT; i++) {
        obs->numbers[i] = (int8_t)((int32_t)rl_below(rng, 2 * MOST + 1) - MOST);
        sum += obs->numbers[i];
    }
    spaces->answer[PICTURE] = white > PIXELS / 2;
    spaces->answer[NUMBERS] = sum > 0;
    spaces->answer[CLUE] = *obs->clue = (int32_t)rl_below(rng, CLUES);
}

// step shows the next questions already: what is seen at the end of an episode matters to nobody.
static void step(Spaces *spaces, rl_rng *rng, const int32_t *action, const Seen *obs, rl_result *out)
{
    int32_t right = 0;
    for (int32_t i = 0; i < QUESTIONS; i++) right += action[i] == spaces->answer[i];
    out->reward = (float)right / QUESTIONS;
    out->terminated = true;
    reset(spaces, rng, obs);
}

RL_ENV(Spaces, setup, reset, step, .name = "spaces@1", .action = RL_MULTI_DISCRETE(2, 2, CLUES), RL_OBSERVATIONS(seen), .episode_limit = 1)
