// A wrapper that multiplies rewards by a number which a file of data has.
#include "rl_component.h"
#include "rl_data.h"

typedef struct { float factor; } Scale;

static bool setup(void *self, rl_config *config)
{
    (void)config;
    Scale *scale = self;
    char text[4];
    long n = rl_data("sizes/length.txt", text, sizeof text);
    if (n < 2) return rl_fail(rl_data_error(n));
    scale->factor = (float)(10 * (text[0] - '0') + text[1] - '0');
    char said[] = "factor ..";
    said[7] = text[0], said[8] = text[1];
    rl_log(RL_INFO, said);
    return scale->factor > 0 || rl_fail("length.txt has no number");
}

static bool on_step(void *self, const rl_message *m)
{
    const Scale *scale = self;
    const rl_column *reward = rl_column_of(m, 0), *learned = rl_column_of(m, 1);
    for (uint32_t env = 0; env < reward->envs; env++)
        for (uint32_t agent = 0; agent < reward->agents; agent++)
            *RL_AT(float, learned, 0, env, agent, 0) = scale->factor * *RL_AT(float, reward, 0, env, agent, 0);
    return rl_emit(0, m);
}

static const rl_want WANTS[] = {{"reward", RL_F32, 0}, {"shaped_reward", RL_F32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"on_step", "reward_request", "one env step of a batch", on_step, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Scale, .name = "scale@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
