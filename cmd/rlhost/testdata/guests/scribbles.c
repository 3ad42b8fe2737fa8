// Plays 3 for a policy, and goes wrong as its argument says.
//
//	fault = 1 it forgets the agents' axis, 2 it does not look at active, 3 at policy, 4 at value_only, 5 it writes the row after the asked one
#include "rl_component.h"

enum { AXIS = 1, IDLE, OTHERS, LAST, LATE };
enum { ACTIONS };                // signals
enum { ACTION, ACTIVE, POLICY }; // columns

typedef struct {
    int32_t fault;
} Scribbles;

static bool setup(void *self, rl_config *config)
{
    ((Scribbles *)self)->fault = (int32_t)rl_arg_i64(config, "fault", 0);
    rl_arg_text(config, "policy", "");
    return true;
}

static bool act(void *self, const rl_message *m)
{
    const int32_t fault = ((Scribbles *)self)->fault;
    const rl_column *action = rl_column_of(m, ACTION), *active = rl_column_of(m, ACTIVE), *policy = rl_column_of(m, POLICY);
    const rl_act_request r = rl_act_request_of(m);
    if (r.value_only && fault != LAST) return rl_emit(ACTIONS, m);
    const uint32_t t = r.value_only ? m->t - 1 : m->t;
    for (uint32_t env = 0; env < action->envs; env++)
        for (uint32_t agent = 0; agent < (fault == AXIS ? 1 : action->agents); agent++) {
            if (fault != IDLE && active->ptr && !*RL_AT(uint8_t, active, t, env, agent, 0)) continue;
            if (fault != OTHERS && policy->ptr && *RL_AT(uint8_t, policy, t, env, agent, 0) != r.policy) continue;
            *RL_AT(int32_t, action, fault == LATE ? t + 1 : t, env, agent, 0) = 3;
        }
    return rl_emit(ACTIONS, m);
}

static const rl_want WANTS[] = {{"action", RL_I32, RL_COLUMN_WRITE}, {"active", RL_U8, RL_COLUMN_OPTIONAL}, {"policy", RL_U8, RL_COLUMN_OPTIONAL}};
static const rl_signal_spec SIGNALS[] = {{"actions", "actions", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"act", "act_request", "rows that wait for actions", act, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Scribbles, .name = "scribbles@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
