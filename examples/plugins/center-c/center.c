// A wrapper of rewards with a memory: of each reward r the learner gets r minus the mean of the environment's rewards so far.
#include "rl_component.h"

typedef struct {
    double least; // rewards before the mean counts
} Center;

enum { SHAPED };                      // signals
enum { REWARD, LEARNED, SUM, COUNT }; // columns

static bool setup(void *self, rl_config *config)
{
    Center *center = self;
    center->least = rl_arg_f64(config, "least", 1);
    return center->least >= 1 || rl_fail("least: want 1 or more");
}

static bool on_step(void *self, const rl_message *m)
{
    const Center *center = self;
    const rl_column *reward = rl_column_of(m, REWARD), *learned = rl_column_of(m, LEARNED);
    const rl_column *sum = rl_column_of(m, SUM), *count = rl_column_of(m, COUNT);
    for (uint32_t env = 0; env < reward->envs; env++)
        for (uint32_t agent = 0; agent < reward->agents; agent++) {
            double *s = RL_AT(double, sum, 0, env, agent, 0), *n = RL_AT(double, count, 0, env, agent, 0);
            double r = (double)*RL_AT(float, reward, 0, env, agent, 0), mean = *n >= center->least ? *s / *n : 0;
            *RL_AT(float, learned, 0, env, agent, 0) = (float)(r - mean);
            *s += r;
            *n += 1;
        }
    return rl_emit(SHAPED, m);
}

static const rl_want WANTS[] = {{"reward", RL_F32, 0}, {"shaped_reward", RL_F32, RL_COLUMN_WRITE},
    {"wrapper_state", RL_F64, RL_COLUMN_WRITE}, {"wrapper_state/1", RL_F64, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"on_step", "reward_request", "one env step of a batch", on_step, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Center, .name = "center@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
