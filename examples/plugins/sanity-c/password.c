// Password: five binary digits are asked for, in an order that is another each time, with a reward after the last only if all of them are
// right: the policy has to come upon the word by chance and then keep to it.
//
//	word  the digits as a number, the first is the lowest, 0 to 31 (22)
//
// The observation has for each digit -1 or 1 once it is entered and 0 before, then for each digit 1 if it is asked for now. Optimal score 1;
// digits at random have 1/32.
#include "rl_env.h"

enum { DIGITS = 5 };

typedef struct {
    int32_t word;
    int32_t entered;       // as word
    int32_t order[DIGITS]; // which digit is asked for when
    int32_t digits;        // how many are entered
} Password;

static bool setup(Password *password, rl_config *config)
{
    int64_t word = rl_arg_i64(config, "word", 22);
    if (word < 0 || word >= 1 << DIGITS) return rl_fail("word must be 0 to 31");
    password->word = (int32_t)word;
    return true;
}

static void look(const Password *password, float *obs)
{
    for (int32_t i = 0; i < 2 * DIGITS; i++) obs[i] = 0;
    for (int32_t i = 0; i < password->digits; i++) {
        int32_t digit = password->order[i];
        obs[digit] = password->entered >> digit & 1 ? 1 : -1;
    }
    if (password->digits < DIGITS) obs[DIGITS + password->order[password->digits]] = 1;
}

static void reset(Password *password, rl_rng *rng, float *obs)
{
    int32_t *order = password->order;
    for (int32_t i = 0; i < DIGITS; i++) { // the digits so far in any order, with one more
        int32_t place = (int32_t)rl_below(rng, (uint32_t)i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    password->entered = 0;
    password->digits = 0;
    look(password, obs);
}

static void step(Password *password, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    password->entered |= *action << password->order[password->digits++];
    look(password, obs);
    out->terminated = password->digits == DIGITS;
    out->reward = out->terminated && password->entered == password->word;
}

RL_ENV(Password, setup, reset, step, .name = "password@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -1, 1, 2, DIGITS),
       .episode_limit = DIGITS)
