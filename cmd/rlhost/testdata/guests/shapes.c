// A wrapper of rewards that goes wrong where its arguments say.
//
//	fault = 1 out of bounds, 2 a loop without end, 3 a reward that is no number, 4 no answer, 5 a reward that depends on the others,
//	        6 a write into what it may only read
//	env   = the environment of the batch in which, step = how many steps that has made before; 0: in the first of each episode
#include "rl_component.h"

enum { TRAP = 1, LOOP, NOT_A_NUMBER, SILENCE, CROWD, TRESPASS };
enum { SHAPED };                 // signals
enum { LEARNED, COUNT, BEGINS }; // columns

typedef struct {
    int32_t fault, env, at;
} Shapes;

static volatile int32_t sink;

static bool setup(void *self, rl_config *config)
{
    Shapes *shapes = self;
    shapes->fault = (int32_t)rl_arg_i64(config, "fault", 0);
    shapes->env = (int32_t)rl_arg_i64(config, "env", 0);
    shapes->at = (int32_t)rl_arg_i64(config, "step", 0);
    return true;
}

static bool on_step(void *self, const rl_message *m)
{
    const Shapes *shapes = self;
    const rl_column *learned = rl_column_of(m, LEARNED), *count = rl_column_of(m, COUNT), *begins = rl_column_of(m, BEGINS);
    const uint32_t who = (uint32_t)shapes->env;
    bool then = who < count->envs && (shapes->at == 0 ? *RL_AT(uint8_t, begins, 0, who, 0, 0) != 0 : *RL_AT(int32_t, count, 0, who, 0, 0) == shapes->at);
    for (uint32_t env = 0; env < count->envs; env++)
        for (uint32_t agent = 0; agent < count->agents; agent++) *RL_AT(int32_t, count, 0, env, agent, 0) += 1;
    if (!then) return rl_emit(SHAPED, m);
    switch (shapes->fault) {
    case TRAP: *(volatile int32_t *)0xfffffff0u = 1; break;
    case LOOP: for (;;) sink++;
    case NOT_A_NUMBER: *RL_AT(float, learned, 0, 0, 0, 0) = __builtin_nanf(""); break;
    case SILENCE: return true;
    case TRESPASS: *RL_AT(uint8_t, begins, 0, who, 0, 0) = 7; break;
    case CROWD: *RL_AT(float, learned, 0, who, 0, 0) += (float)count->envs; break;
    }
    return rl_emit(SHAPED, m);
}

static const rl_want WANTS[] = {{"shaped_reward", RL_F32, RL_COLUMN_WRITE}, {"wrapper_state", RL_I32, RL_COLUMN_WRITE}, {"wrapper_begins", RL_U8, 0}};
static const rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"on_step", "reward_request", "one env step of a batch", on_step, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Shapes, .name = "shapes@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
