// A wrapper of observations with a memory: one in every of an episode's observations is all zeros, so that what cannot be seen has to be
// remembered.
#include "rl_component.h"

typedef struct {
    int32_t every;
} Flicker;

enum { OBSERVED };            // signals
enum { OBS, BEGINS, COUNT }; // columns

static bool setup(void *self, rl_config *config)
{
    Flicker *flicker = self;
    flicker->every = (int32_t)rl_arg_i64(config, "every", 2);
    return flicker->every > 1 || rl_fail("every: want 2 or more");
}

static bool on_observe(void *self, const rl_message *m)
{
    const Flicker *flicker = self;
    const rl_column *obs = rl_column_of(m, OBS), *begins = rl_column_of(m, BEGINS), *count = rl_column_of(m, COUNT);
    for (uint32_t env = 0; env < obs->envs; env++) {
        int32_t *n = RL_AT(int32_t, count, 0, env, 0, 0);
        *n = *RL_AT(uint8_t, begins, 0, env, 0, 0) ? 1 : *n + 1;
        if (*n % flicker->every) continue;
        for (uint32_t i = 0; i < obs->elems; i++) *RL_AT(float, obs, 0, env, 0, i) = 0;
    }
    return rl_emit(OBSERVED, m);
}

static const rl_want WANTS[] = {{"obs", RL_F32, RL_COLUMN_WRITE}, {"wrapper_begins", RL_U8, 0}, {"wrapper_state", RL_I32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"observed", "observations", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"on_observe", "observe_request", "what a batch observes", on_observe, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Flicker, .name = "flicker@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
