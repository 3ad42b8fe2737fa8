// A wrapper of actions, of two choices: each environment takes the other one in one of every so many steps.
//
//	every = after how many steps
//	fault = 1 an action that is none, 2 out of bounds: in the same steps
#include "rl_component.h"

enum { NO_ACTION = 1, TRAP };
enum { ACTIONS };       // signals
enum { ACTION, COUNT }; // columns

typedef struct {
    int32_t fault, every;
} Acts;

static bool setup(void *self, rl_config *config)
{
    Acts *acts = self;
    acts->fault = (int32_t)rl_arg_i64(config, "fault", 0);
    acts->every = (int32_t)rl_arg_i64(config, "every", 2);
    return acts->every > 0 || rl_fail("every: want 1 or more");
}

static bool act(void *self, const rl_message *m)
{
    const Acts *acts = self;
    const rl_column *action = rl_column_of(m, ACTION), *count = rl_column_of(m, COUNT);
    for (uint32_t env = 0; env < action->envs; env++)
        for (uint32_t agent = 0; agent < action->agents; agent++) {
            int32_t *a = RL_AT(int32_t, action, 0, env, agent, 0), *n = RL_AT(int32_t, count, 0, env, agent, 0);
            *n += 1;
            if (*n % acts->every) continue;
            *a = acts->fault == NO_ACTION ? 2 : 1 - *a;
            if (acts->fault == TRAP) *(volatile int32_t *)0xfffffff0u = 1;
        }
    return rl_emit(ACTIONS, m);
}

static const rl_want WANTS[] = {{"action", RL_I32, RL_COLUMN_WRITE}, {"wrapper_state", RL_I32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"actions", "actions", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"act", "act_request", "one env step of a batch", act, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Acts, .name = "acts@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
