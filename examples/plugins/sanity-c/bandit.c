// Bandit: one pull of one of four arms, with nothing to see. One arm always pays, the others half of the time: the policy
// has to find it by trying.
//
//	best  number of the arm that always pays, 0 to 3 (2)
//
// Optimal score 1; another arm has 0.5, arms at random 0.625.
#include "rl_env.h"

enum { ARMS = 4 };

typedef struct {
    int32_t best;
} Bandit;

static bool setup(Bandit *bandit, rl_config *config)
{
    int64_t best = rl_arg_i64(config, "best", 2);
    if (best < 0 || best >= ARMS) return rl_fail("best must be 0 to 3");
    bandit->best = (int32_t)best;
    return true;
}

static void reset(Bandit *bandit, rl_rng *rng, float *obs)
{
    (void)bandit;
    (void)rng;
    obs[0] = 1;
}

static void step(Bandit *bandit, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    bool luck = rl_below(rng, 2);
    obs[0] = 1;
    out->reward = *action == bandit->best || luck;
    out->terminated = true;
}

RL_ENV(Bandit, setup, reset, step, .name = "bandit@1", .action = RL_DISCRETE(ARMS), .obs = RL_BOX(RL_F32, 0, 1, 1),
       .episode_limit = 1)
