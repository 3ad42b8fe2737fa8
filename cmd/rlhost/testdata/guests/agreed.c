// A component that answers requests about rewards with the rewards as they are, and that says which schema it means.
//
//	schema   = that of its answers
//	trespass = 1: it writes into the rewards too, which it may only read
//	scale    = whatever it is
#include "rl_component.h"

enum { SHAPED };           // signals
enum { REWARD, LEARNED }; // columns

typedef struct {
    bool trespass;
} Agreed;

static rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "they have been written", 0}};

static bool setup(void *self, rl_config *config)
{
    Agreed *agreed = self;
    agreed->trespass = rl_arg_i64(config, "trespass", 0) != 0;
    SIGNALS[0].schema = (uint64_t)rl_arg_i64(config, "schema", 0x1122334455667788);
    (void)rl_arg_f64(config, "scale", 1);
    return true;
}

static bool on_rewards(void *self, const rl_message *m)
{
    const Agreed *agreed = self;
    const rl_column *reward = rl_column_of(m, REWARD), *learned = rl_column_of(m, LEARNED);
    for (uint32_t t = 0; t < reward->rows; t++)
        for (uint32_t env = 0; env < reward->envs; env++)
            for (uint32_t agent = 0; agent < reward->agents; agent++)
                *RL_AT(float, learned, t, env, agent, 0) = *RL_AT(float, reward, t, env, agent, 0);
    if (agreed->trespass) *RL_AT(float, reward, 0, 0, 0, 0) += 1;
    return rl_emit(SHAPED, m);
}

static const rl_want WANTS[] = {{"reward", RL_F32, 0}, {"shaped_reward", RL_F32, RL_COLUMN_WRITE}};
static const rl_slot_spec SLOTS[] = {{"on_rewards", "reward_request", "the rewards of a block can be shaped", on_rewards, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Agreed, .name = "agreed@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
