// A shaper of rewards that leaves them as they are, and goes wrong at its message number `at`, from 1 (0: never).
//
//	fault = 1 out of bounds, 2 a loop without end
#include "rl_component.h"

enum { TRAP = 1, LOOP };
enum { SHAPED };          // signals
enum { REWARD, LEARNED }; // columns

typedef struct {
    int64_t fault, at, came;
} Asked;

static volatile int32_t sink;

static bool setup(void *self, rl_config *config)
{
    Asked *asked = self;
    asked->fault = rl_arg_i64(config, "fault", 0);
    asked->at = rl_arg_i64(config, "at", 0);
    return true;
}

static bool on_rewards(void *self, const rl_message *m)
{
    Asked *asked = self;
    const rl_column *reward = rl_column_of(m, REWARD), *learned = rl_column_of(m, LEARNED);
    if (++asked->came == asked->at) {
        if (asked->fault == TRAP) *(volatile int32_t *)0xfffffff0u = 1;
        if (asked->fault == LOOP) for (;;) sink++;
    }
    for (uint32_t t = 0; t < reward->rows; t++)
        for (uint32_t env = 0; env < reward->envs; env++) *RL_AT(float, learned, t, env, 0, 0) = *RL_AT(float, reward, t, env, 0, 0);
    return rl_emit(SHAPED, m);
}

static const rl_want WANTS[] = {{"reward", RL_F32, 0}, {"shaped_reward", RL_F32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "as they came", 0}};
static const rl_slot_spec SLOTS[] = {{"on_rewards", "reward_request", "the rewards of a block", on_rewards, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Asked, .name = "asked@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
