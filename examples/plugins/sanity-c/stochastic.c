// Stochastic: one of two actions has to be chosen in a given part of the steps, and nothing is seen but which of them it is in this
// episode: the best policy chooses at random, with that probability.
//
//	part     of the steps in which that action has to be chosen, between 0 and 1 (0.75)
//	horizon  steps of an episode (100)
//
// The score is 1 less how far the part in an episode was away, as a part of the farthest possible. A step is rewarded with its share of that:
// more where it brings the two together, less where it takes them apart. With the defaults the best random policy has 0.954, the
// action alone 0.667, the other 0, each half of the time 0.667: judge sampled actions, not the most probable ones.
//
// The observation is -1 for action 0, 1 for action 1.
#include "rl_env.h"

typedef struct {
    double part, surplus; // surplus: of the action so far, over part of the steps
    int32_t right;        // the action
    int32_t steps, horizon;
} Stochastic;

static int64_t horizon(rl_config *config) { return rl_arg_i64(config, "horizon", 100); }

static bool setup(Stochastic *s, rl_config *config)
{
    int64_t steps = horizon(config);
    s->part = rl_arg_f64(config, "part", 0.75);
    if (!(s->part > 0 && s->part < 1)) return rl_fail("part must be between 0 and 1");
    if (steps < 1 || steps > INT32_MAX) return rl_fail("horizon must be 1 to 2147483647");
    s->horizon = (int32_t)steps;
    return true;
}

static void look(const Stochastic *s, float *obs) { obs[0] = s->right ? 1 : -1; }

static void reset(Stochastic *s, rl_rng *rng, float *obs)
{
    s->right = (int32_t)rl_below(rng, 2);
    s->surplus = 0;
    s->steps = 0;
    look(s, obs);
}

static double size(double x) { return x < 0 ? -x : x; }

static void step(Stochastic *s, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    double before = size(s->surplus), farthest = s->part > 0.5 ? s->part : 1 - s->part;
    s->surplus += (*action == s->right) - s->part;
    s->steps++;
    out->reward = (float)((1 - (size(s->surplus) - before) / farthest) / s->horizon);
    out->truncated = s->steps >= s->horizon;
    look(s, obs);
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)horizon(config);
    return true;
}

RL_ENV(Stochastic, setup, reset, step, .name = "stochastic@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -1, 1, 1),
       .episode_limit = 100, .describe = describe)
