// A wrapper of rewards that leaves them as they are, and tells the log of each step that it is asked about.
#include "rl_component.h"

typedef struct {
    int32_t none;
} Tells;

static bool setup(void *self, rl_config *config)
{
    (void)self, (void)config;
    return true;
}

static bool on_step(void *self, const rl_message *m)
{
    (void)self;
    rl_log(RL_WARNING, "a step was made");
    return rl_emit(0, m);
}

static const rl_want WANTS[] = {{"shaped_reward", RL_F32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "as they came", 0}};
static const rl_slot_spec SLOTS[] = {{"on_step", "reward_request", "one env step of a batch", on_step, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Tells, .name = "tells@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
